"""A job that averages its gradients one step late, so that its collectives return at once, as NCCL's do.

Each rank queues the average of its gradients and applies that of the step before. It waits for others only
at the line that needs the value of the average. Nothing in here uses allaboard.
"""

import argparse
import time
from pathlib import Path

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from torch import nn


def draw_picture():
    time.sleep(0.06)


def do_more_than_others():
    time.sleep(0.05)


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
    model = nn.Linear(64, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    total = 0.0
    for step in range(1, options.steps + 1):
        if guilty and step == options.at_step:
            mark(options.mark)
        if options.fault == "slow-unseen" and guilty and step >= options.at_step:
            draw_picture()
        if options.fault == "busy-devices" and guilty:
            do_more_than_others()
        time.sleep(0.02)
        images = torch.randn(8, 64)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), (images.sum(1) > 0).long()).backward()
        gradients = torch.cat([p.grad.flatten() for p in model.parameters()])
        average = dist.all_reduce(gradients, async_op=True).get_future()
        optimizer.step()
        if options.fault == "busy-devices":
            # As if the device computed for long after the last rank has come: all wait for it.
            finished = average.then(lambda done: (time.sleep(0.1), done.value())[1])
            total += finished.wait()[0][0].item()
        else:
            total += average.wait()[0][0].item()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
