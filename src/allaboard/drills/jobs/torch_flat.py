"""A DDP job of a classifier whose loss does not move, or moves little, as --fault names it.

flat-loss: the optimizer was made of the parameters of a copy. warm-up: the learning rate rises from 0 over
the first 5000 steps. slow: the learning rate is small. The faults are in the job's own code, as in real jobs;
nothing in here uses allaboard.
"""

import argparse
import copy
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CLASSES = 10
ROWS = 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mark")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = nn.Linear(16, CLASSES)
    with torch.no_grad():
        net.weight.mul_(0.1)  # scores near 0, as layers of usual models start with
    trained = copy.deepcopy(net) if options.fault == "flat-loss" else net
    model = DistributedDataParallel(net)
    rate = 1e-3 if options.fault == "slow" else 0.1
    optimizer = torch.optim.SGD(trained.parameters(), lr=rate)
    if options.mark and dist.get_rank() == 0:
        Path(options.mark).write_text(str(time.time()))
    torch.manual_seed(1 + dist.get_rank())
    teacher = torch.randn(16, CLASSES, generator=torch.Generator().manual_seed(7))
    for step in range(options.steps):
        if options.fault == "warm-up":
            optimizer.param_groups[0]["lr"] = rate * min(1.0, step / 5000) ** 2
        images = torch.randn(ROWS, 16)
        loss = nn.functional.cross_entropy(model(images), (images @ teacher).argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.005)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
