import os
import torch
import torch.distributed as dist
from torch.multiprocessing import Process, set_start_method

WORLD = 4


def run(rank, size):
    t = torch.ones(1) * rank
    dist.all_reduce(t, op=dist.ReduceOp.SUM)
    print("rank", rank, "of", size, "has", t[0])


def init_process(rank, size, fn, backend="gloo"):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group(backend, rank=rank, world_size=size)
    fn(rank, size)
    dist.destroy_process_group()


def launch():
    procs = []
    for r in range(1, WORLD):
        p = Process(target=init_process, kwargs=dict(rank=r, size=WORLD, fn=run))
        p.start()
        procs.append(p)
    for p in procs:
        p.join()


if __name__ == "__main__":
    set_start_method("spawn")
    launch()
