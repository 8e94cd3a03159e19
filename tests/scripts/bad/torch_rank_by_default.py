import os
import torch
import torch.distributed as dist


def setup(rank=0, world_size=2):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12399"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def train():
    setup()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    model(torch.randn(2, 4)).mean().backward()


if __name__ == "__main__":
    train()
