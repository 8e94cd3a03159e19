import argparse
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from mylib import build, fit

parser = argparse.ArgumentParser()
parser.add_argument("--world-size", default=1, type=int, help="number of nodes")
parser.add_argument("--rank", default=0, type=int, help="rank of this node")
parser.add_argument("--dist-url", default="tcp://127.0.0.1:23456")


def main():
    args = parser.parse_args()
    ngpus = torch.cuda.device_count()
    args.world_size = ngpus * args.world_size
    mp.spawn(main_worker, nprocs=ngpus, args=(ngpus, args))


def main_worker(gpu, ngpus, args):
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl", init_method=args.dist_url, world_size=args.world_size, rank=args.rank)
    fit(torch.nn.parallel.DistributedDataParallel(build().cuda(gpu), device_ids=[gpu]))


if __name__ == "__main__":
    main()
