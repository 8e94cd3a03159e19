import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def main_worker(files, args):
    dist.init_process_group("nccl", init_method=args.dist_url, world_size=args.world_size, rank=args.rank)
    torch.cuda.set_device(args.rank)
    infer(files)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--world_size", type=int, default=2)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--dist_url", default="tcp://127.0.0.1:23456")
    args = parser.parse_args()
    mp.spawn(main_worker(["a.txt", "b.txt"], args), nprocs=args.world_size)


if __name__ == "__main__":
    main()
