import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def make_store(world):
    path = os.path.join(tempfile.mkdtemp(), "store")
    return dist.FileStore(path, world)


def job(rank, world):
    store = make_store(world)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    x = torch.arange(4.0) * rank
    dist.broadcast(x, src=0)
    print(rank, x)
    dist.destroy_process_group()


if __name__ == "__main__":
    world = 4
    mp.spawn(job, (world,), world)
