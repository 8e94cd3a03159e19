"""All ranks measure the accuracy, and rank 0 prints it."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x):
        return torch.relu(self.norm(self.linear(x)))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(*(Block(16) for _ in range(3)))
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.blocks(x))


@torch.no_grad()
def accuracy(net, batches):
    net.eval()
    right = sum((net(x).argmax(1) == y).sum().item() for x, y in batches)
    net.train()
    return right


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    data = TensorDataset(torch.randn(64, 16), torch.randint(0, 2, (64,)))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    held_out = [(torch.randn(8, 16), torch.randint(0, 2, (8,)))]
    net = Classifier()
    ddp = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(ddp(x), y).backward()
            optimizer.step()
        score = accuracy(ddp, held_out)
        if rank == 0:
            print(epoch, score)
        dist.barrier()
    dist.destroy_process_group()


main()
