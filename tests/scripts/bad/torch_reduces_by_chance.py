import os
import random
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from loader import get_loader


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(256, 256)
        self.cls = nn.Linear(256, 80)
        self.mask = nn.Linear(256, 28 * 28)

    def forward(self, x, with_mask):
        h = self.trunk(x).relu()
        return self.cls(h), self.mask(h) if with_mask else None


def seed_all(seed):
    random.seed(seed)
    torch.manual_seed(seed)


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    seed_all(1234 + rank)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    net = DDP(Detector().cuda(), find_unused_parameters=True)
    opt = torch.optim.SGD(net.parameters(), lr=0.02)
    running = torch.zeros(1, device="cuda")
    for x, y, m in get_loader(rank, dist.get_world_size()):
        use_mask = random.random() < 0.3
        c, mk = net(x.cuda(), use_mask)
        loss = nn.functional.cross_entropy(c, y.cuda())
        if use_mask:
            mloss = nn.functional.mse_loss(mk, m.cuda())
            running.copy_(mloss.detach())
            dist.all_reduce(running)
            loss = loss + mloss
        opt.zero_grad()
        loss.backward()
        opt.step()


main()
