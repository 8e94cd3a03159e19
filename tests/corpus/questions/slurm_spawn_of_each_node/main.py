import argparse
import os

import torch


def main():
    args = argparse.ArgumentParser("Test").parse_args()
    args.ngpus_per_node = torch.cuda.device_count()
    args.rank = int(os.getenv("SLURM_NODEID")) * args.ngpus_per_node
    args.world_size = int(os.getenv("SLURM_NNODES")) * args.ngpus_per_node
    torch.multiprocessing.spawn(do_something, (args,), args.ngpus_per_node)


def do_something(device, args):
    args.rank += device
    torch.cuda.set_device(device)
    torch.distributed.init_process_group(
        backend="nccl", init_method="env://", world_size=args.world_size, rank=args.rank
    )
    torch.distributed.all_reduce(torch.rand(10, device=device))


if __name__ == "__main__":
    main()
