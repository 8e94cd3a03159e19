import os

import torch.distributed as dist
from torch.multiprocessing import Process


def setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def run(rank, size):
    setup(rank, size)
    dist.barrier()


if __name__ == "__main__":
    processes = [Process(target=run, args=(rank, 2)) for rank in range(1, 3)]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
