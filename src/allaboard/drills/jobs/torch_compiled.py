"""A training loop whose loss is averaged inside a torch.compile graph, and which fails as --fault names on
rank --guilty. The backend writes no machine code, and is compiled in a moment; its collectives are called in
C++ as those of any other."""

import argparse
import os
import time
from pathlib import Path

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as functional


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--backend", default="aot_eager")
    parser.add_argument("--mark")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    guilty = int(os.environ["RANK"]) == options.guilty
    torch.manual_seed(0)
    model = nn.Linear(16, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    @torch.compile(backend=options.backend)
    def forward(images):
        loss = model(images).square().mean()
        return loss, functional.all_reduce(loss.detach().reshape(1), "sum", dist.group.WORLD)

    @torch.compile(backend=options.backend)
    def gathers(images):
        loss = model(images).square().mean()
        losses_of_all = functional.all_gather_tensor(loss.detach().reshape(1), 0, dist.group.WORLD)
        return loss, losses_of_all.mean()

    for step in range(1, options.steps + 1):
        fails = guilty and step == options.at_step
        if fails and options.mark:
            Path(options.mark).write_text(str(time.time()))
        if fails and options.fault == "compiled-asleep":
            time.sleep(3600)
        optimizer.zero_grad()
        loss, _ = (gathers if fails and options.fault == "compiled-order" else forward)(
            torch.randn(8, 16)
        )
        loss.backward()
        optimizer.step()
        time.sleep(0.005)
    print("trained")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
