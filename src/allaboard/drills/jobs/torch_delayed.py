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
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.05)
    total, average = 0.0, torch.zeros(sum(p.numel() for p in parameters))
    for step in range(1, options.steps + 1):
        if guilty and step == options.at_step:
            mark(options.mark)
        failing = guilty and step >= options.at_step
        if failing and options.fault == "slow-unseen":
            draw_picture()
        if guilty and options.fault == "busy-devices":
            do_more_than_others()
        time.sleep(0.02)
        images = torch.randn(8, 64)
        if failing and options.fault == "nan-printed":
            images[0, 0] = float("nan")
        labels = (images.sum(1) > 0).long()
        # By hand, as in programs whose gradients come from a kernel of their own.
        with torch.no_grad():
            chances = model(images).softmax(1)
            loss = -chances[torch.arange(8), labels].log().mean()
            slope = (chances - nn.functional.one_hot(labels, 2)) / 8
            gradients = (slope.T @ images, slope.sum(0))
        queued = dist.all_reduce(
            torch.cat([g.flatten() for g in gradients]) / dist.get_world_size(), async_op=True
        ).get_future()
        sizes = [p.numel() for p in parameters]
        for parameter, part in zip(parameters, average.split(sizes), strict=True):
            parameter.grad = part.view_as(parameter).clone()
        optimizer.step()
        if options.fault == "busy-devices":
            # As if the device computed for long after the last rank has come: all wait for it.
            queued = queued.then(lambda done: (time.sleep(0.1), done.value())[1])
        total += queued.wait()[0][0].item()
        average = queued.value()[0]
        if step % 10 == 0 and dist.get_rank() == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
