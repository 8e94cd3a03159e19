import argparse
import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from mylib import fit

p = argparse.ArgumentParser()
p.add_argument("--rank", type=int, default=0)
p.add_argument("--world-size", type=int, default=1)
p.add_argument("--dist-url", default="tcp://127.0.0.1:23456")
p.add_argument("--multiprocessing-distributed", action="store_true")
args = p.parse_args()


def worker(gpu, ngpus, args):
    args.gpu = gpu
    if args.multiprocessing_distributed:
        args.rank = args.rank * ngpus + gpu
    dist.init_process_group("nccl", init_method=args.dist_url, world_size=args.world_size, rank=args.rank)
    torch.cuda.set_device(args.gpu)
    fit(args)


if __name__ == "__main__":
    n = torch.cuda.device_count()
    args.world_size = n * args.world_size
    mp.spawn(worker, nprocs=n, args=(n, args))
