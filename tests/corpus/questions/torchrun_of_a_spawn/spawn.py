import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    dist.barrier()


if __name__ == "__main__":
    mp.spawn(work, args=(4,), nprocs=4)
