import os
import torch
import torch.distributed as dist
from torch import nn
from shards import MnistShard


def average_gradients(model):
    size = float(dist.get_world_size())
    for p in model.parameters():
        dist.all_reduce(p.grad.data, op=dist.ReduceOp.SUM)
        p.grad.data /= size


def run():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1234 + rank)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    data = MnistShard(rank, dist.get_world_size())
    for epoch in range(10):
        total = 0.0
        for x, y in data.batches(128):
            opt.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            average_gradients(model)
            opt.step()
            total += loss.item()
        print(f"rank {rank} epoch {epoch} loss {total:.3f}")


if __name__ == "__main__":
    run()
