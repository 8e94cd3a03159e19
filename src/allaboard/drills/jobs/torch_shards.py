"""A DDP job whose ranks each read their own part of the data, or fail to, as --fault names it.

The faults are in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import gc
import time
from pathlib import Path

# Thousands of modules are loaded, and looking all through for garbage takes a fifth of that.
gc.set_threshold(50_000, 20, 1_000)

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

ROWS = 8
PASSES = 3
"""Passes of the job whose ranks do not meet between them."""


def part(fault, guilty, batches, rows):
    """Return this rank's share of ``batches`` batches; a fault in it is there from the start."""
    images = torch.randn(batches * rows * 3, 64, generator=torch.Generator().manual_seed(7))
    if fault != "same-batches":
        images = images[dist.get_rank() :: dist.get_world_size()]
    if fault in ("uneven-batches", "uneven-passes") and guilty:
        images = images[: -2 * ROWS]
    if fault == "one-batch":
        # As many whole batches on each rank, whatever their number.
        images = images[: batches * rows * 3 // dist.get_world_size() // rows * rows]
    if fault == "one-batch" and guilty:
        images = images[:rows].repeat(len(images) // rows, 1)
    return TensorDataset(images, (images.sum(1) > 0).long())


def load_older(net):
    """Resume from another checkpoint, on this rank alone."""
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(0.9)


def mark(path):
    """Record when the fault began, for measurements of the time until it is found."""
    if path:
        Path(path).write_text(str(time.time()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mark")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    guilty = dist.get_rank() == options.guilty
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    rows = ROWS // 2 if options.fault == "batch-sizes-differ" and guilty else ROWS
    loader = DataLoader(part(options.fault, guilty, options.at_step, rows), batch_size=rows)
    begins = options.at_step
    if options.fault in ("same-batches", "batch-sizes-differ", "one-batch"):
        begins = 1
    elif options.fault == "uneven-batches":
        begins -= 2
    apart = options.fault == "uneven-passes"
    if apart:
        begins = PASSES * (options.at_step - 2)
    step = passes = 0
    while step < options.steps and not (apart and passes == PASSES):
        for images, labels in loader:
            step += 1
            optimizer.zero_grad()
            if options.fault == "nan-loss" and guilty and step == options.at_step:
                images = images * float("nan")  # a mean over an empty shard
            if options.fault == "parted" and guilty and step == options.at_step:
                load_older(model.module)
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            if guilty and step == begins:
                mark(options.mark)
            time.sleep(0.005)
        passes += 1
        if not apart:
            mean = loss.detach().clone()
            dist.all_reduce(mean)
    dist.barrier()
    time.sleep(0.3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
