import os
import torch.distributed as dist
from torch.multiprocessing import Process

WORLD = 3


def run(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29513"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    dist.barrier()


if __name__ == "__main__":
    workers = []
    for r in range(WORLD):
        p = Process(target=run, kwargs={"rank": r, "world_size": WORLD})
        p.start()
        workers.append(p)
    for p in workers:
        p.join()
