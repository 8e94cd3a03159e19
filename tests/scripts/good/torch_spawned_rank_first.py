import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from net import ToyModel


def setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)


def demo(rank, world_size, epochs):
    setup(rank, world_size)
    model = DDP(ToyModel().to(rank), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(epochs):
        opt.zero_grad()
        out = model(torch.randn(20, 10, device=rank))
        out.sum().backward()
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    n_gpus = torch.cuda.device_count()
    assert n_gpus >= 2, f"Requires at least 2 GPUs, got {n_gpus}"
    mp.spawn(demo, args=(n_gpus, 10), nprocs=n_gpus, join=True)
