"""A pipeline: each rank is a stage, which passes on what it makes and gets back a gradient. It fails as
--fault names on rank --guilty.

The fault is in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import os
import time
from pathlib import Path

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from torch import nn


def receive(tensor, src):
    dist.recv(tensor, src=src)


def receive_batched(tensor, src):
    for work in dist.batch_isend_irecv([dist.P2POp(dist.irecv, tensor, src)]):
        work.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--batched", action="store_true", help="receive by batch_isend_irecv")
    parser.add_argument("--mark")
    options = parser.parse_args()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    take = receive_batched if options.batched else receive
    guilty = bool(options.fault) and rank == options.guilty
    dist.init_process_group("gloo")
    torch.manual_seed(rank)
    stage = nn.Linear(16, 16)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.01)
    under_way = []
    for step in range(1, options.steps + 1):
        optimizer.zero_grad()
        inputs = torch.randn(8, 16)
        if rank:
            take(inputs, src=rank - 1)
        inputs.requires_grad_()
        outputs = torch.tanh(stage(inputs))
        if guilty and step == options.at_step:
            if options.mark:
                Path(options.mark).write_text(str(time.time()))
        elif rank < size - 1:
            under_way.append(dist.isend(outputs.detach(), dst=rank + 1))
        if rank < size - 1:
            gradient = torch.empty(8, 16)
            take(gradient, src=rank + 1)
            outputs.backward(gradient)
        else:
            outputs.square().mean().backward()
        if rank:
            under_way.append(dist.isend(inputs.grad, dst=rank - 1))
        optimizer.step()
        while under_way:
            under_way.pop().wait()
        time.sleep(0.002)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
