"""A small training loop in which every rank sends rank 0 its loss, by a thread beside the main one, and which
fails as --fault names on rank --guilty.

The fault is in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import os
import queue
import threading
import time
from pathlib import Path

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from torch import nn

TAG = 7


def report(losses, group, failing_at):
    """Send one loss a step to rank 0, in a thread."""
    for step in range(1, 1 << 30):
        loss = losses.get()
        if step == failing_at:
            raise KeyError("no such meter: loss")
        dist.send(loss, dst=0, group=group, tag=TAG)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mark")
    options = parser.parse_args()
    rank = int(os.environ["RANK"])
    guilty = bool(options.fault) and rank == options.guilty
    dist.init_process_group("gloo")
    group = dist.new_group()  # the thread's own: two threads in one group take turns by chance
    losses = queue.Queue()
    if rank:
        arguments = (losses, group, options.at_step if guilty else 0)
        threading.Thread(target=report, args=arguments, daemon=True, name="report").start()
    torch.manual_seed(0)
    model = nn.Linear(64, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(1, options.steps + 1):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 64)).square().mean()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        if guilty and step == options.at_step and options.mark:
            Path(options.mark).write_text(str(time.time()))
        if rank:
            losses.put(loss.detach().reshape(1))
            continue
        for peer in range(1, dist.get_world_size()):
            dist.recv(torch.zeros(1), src=peer, group=group, tag=TAG)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
