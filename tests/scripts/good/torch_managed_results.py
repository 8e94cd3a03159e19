import os
import torch
import torch.distributed as dist
from torch.multiprocessing import Process, Manager


def train(rank, world, losses):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29533"
    dist.init_process_group("gloo", rank=rank, world_size=world)
    losses[rank] = float(rank)


if __name__ == "__main__":
    with Manager() as manager:
        losses = manager.dict()
        ps = [Process(target=train, args=(r, 2, losses)) for r in range(2)]
        [p.start() for p in ps]
        [p.join() for p in ps]
        print(sum(losses.values()) / 2)
