import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def warm_up():
    """Compile kernels once, so that the children are fast."""
    x = torch.randn(64, 64).cuda()
    y = (x @ x).sum()
    return y.item()


def train(rank, world):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method="tcp://127.0.0.1:23456", rank=rank, world_size=world)
    model = DDP(nn.Linear(64, 64).cuda(rank), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(100):
        opt.zero_grad()
        model(torch.randn(8, 64, device=rank)).sum().backward()
        opt.step()
    dist.destroy_process_group()


def main():
    print("warm-up:", warm_up())
    world = 2
    children = [mp.Process(target=train, args=(r, world)) for r in range(world)]
    for c in children:
        c.start()
    for c in children:
        c.join()


if __name__ == "__main__":
    main()
