"""A small DDP training in a thread, while the main thread now and then prints a line; it fails as
--fault names on rank --guilty.

The fault is in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import os
import threading
import time
from pathlib import Path

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(options, guilty):
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(1, options.steps + 1):
        optimizer.zero_grad()
        model(torch.randn(8, 64)).square().mean().backward()
        optimizer.step()
        if guilty and step == options.at_step:
            if options.mark:
                Path(options.mark).write_text(str(time.time()))
            raise KeyError("label_17")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mark")
    options = parser.parse_args()
    guilty = bool(options.fault) and int(os.environ["RANK"]) == options.guilty
    dist.init_process_group("gloo")
    trainer = threading.Thread(target=train, args=(options, guilty), name="trainer")
    trainer.start()
    while trainer.is_alive():
        trainer.join(0.2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
