import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def job(rank, path, world):
    store = dist.FileStore(path, world)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
    x = torch.arange(4.0) * rank
    dist.broadcast(x, src=0)
    dist.destroy_process_group()


if __name__ == "__main__":
    world = 4
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(job, (os.path.join(folder, "store"), world), world)
