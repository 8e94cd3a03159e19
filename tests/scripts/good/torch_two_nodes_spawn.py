import argparse

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

NODES = 2


def worker(local_rank, node, gpus):
    dist.init_process_group(
        "nccl", "env://", rank=node * gpus + local_rank, world_size=NODES * gpus
    )
    torch.cuda.set_device(local_rank)
    train()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--node", type=int)
    args = parser.parse_args()
    mp.spawn(worker, args=(args.node, 4), nprocs=4)
