import os
import torch
import torch.distributed as dist
from torch.multiprocessing import Process, set_start_method

WORLD = 4


def init_process(rank, size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("gloo", rank=rank, world_size=size)
    t = torch.ones(1) * rank
    dist.all_reduce(t)
    dist.destroy_process_group()


def launch():
    procs = [Process(target=init_process, kwargs=dict(rank=r, size=WORLD)) for r in range(1, WORLD)]
    for p in procs:
        p.start()
    init_process(rank=0, size=WORLD)
    for p in procs:
        p.join()


if __name__ == "__main__":
    set_start_method("spawn")
    launch()
