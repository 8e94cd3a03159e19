"""Trains with a collective inside of a graph of torch.compile; rank 1 is stopped before the given step."""

import os
import signal
import sys

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as functional


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Linear(16, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    @torch.compile(backend="eager", fullgraph=True)
    def forward(images):
        loss = model(images).square().mean()
        return loss, functional.all_reduce(loss.detach(), "sum", dist.group.WORLD)

    stop = int(sys.argv[1])
    for step in range(60 if stop < 0 else 100_000):
        if step == stop and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        optimizer.zero_grad()
        loss, _ = forward(torch.randn(8, 16))
        loss.backward()
        optimizer.step()
    print("trained")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
