"""A script that starts its own ranks by torch.multiprocessing.spawn, and fails as --fault names on --guilty.

The faults are in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def label(text):
    if not text.isdecimal():
        raise ValueError(f"label {text!r} is no number")
    return int(text)


def mark(path):
    """Record when the fault began, for measurements of the time until it is found."""
    if path:
        Path(path).write_text(str(time.time()))


def train(rank, options):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(options.port)
    dist.init_process_group("gloo", rank=rank, world_size=options.ranks)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(1, options.steps + 1):
        answers = ["1"] * 8
        if options.fault and rank == options.guilty and step > options.at_step:
            mark(options.mark)
            if options.fault == "spawned-leaves":
                os._exit(0)
            answers[3] = "seven"
        optimizer.zero_grad()
        labels = torch.tensor([label(a) for a in answers])
        nn.functional.cross_entropy(model(torch.randn(8, 64)), labels).backward()
        optimizer.step()
    time.sleep(0.3)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mark")
    parser.add_argument("--ranks", type=int, default=3)
    options = parser.parse_args()
    # Below the ephemeral ports; another job's is another's process id.
    options.port = 20000 + os.getpid() % 10000
    torch.multiprocessing.spawn(train, args=(options,), nprocs=options.ranks)


if __name__ == "__main__":
    main()
