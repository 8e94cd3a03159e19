import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


def train(gpu, args):
    dist.init_process_group("nccl", init_method="env://", world_size=args.world_size, rank=gpu)
    torch.cuda.set_device(gpu)
    model = DistributedDataParallel(torch.nn.Linear(10, 10).cuda(gpu), device_ids=[gpu])
    for _ in range(100):
        model(torch.randn(20, 10).cuda(gpu)).sum().backward()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--gpus", type=int, default=2)
    args = parser.parse_args()
    args.world_size = args.nodes * args.gpus
    mp.spawn(train, nprocs=args.gpus, args=(args,))
