"""A small job with batch normalisation under DDP or FSDP; every 20 steps the model is validated.

Under DDP the guilty rank validates alone with ``model.module``, as is right; under FSDP all ranks do. With a
fault the guilty rank alone does what meets all ranks: it runs the wrapped model (``ddp-validates-alone``,
``fsdp-validates-alone``), or steps an optimizer whose state is sharded (``sharded-step-alone``). Nothing in
here uses allaboard.
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
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU())
        self.head = nn.Linear(64, 2)

    def forward(self, images):
        return self.head(self.body(images))


def validate(model, generator):
    model.eval()
    with torch.no_grad():
        for _ in range(4):
            images = torch.randn(16, 64, generator=generator)
            model(images).argmax(1)
    model.train()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=0)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mark")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    sharded = options.fault == "fsdp-validates-alone"
    model = fully_shard(Net()) if sharded else DistributedDataParallel(Net())
    if options.fault == "sharded-step-alone":
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.05)
    else:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    generator = torch.Generator().manual_seed(dist.get_rank())
    for step in range(1, options.steps + 1):
        images = torch.randn(8, 64, generator=generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), (images.sum(1) > 0).long()).backward()
        optimizer.step()
        if step % 20 == 0:
            faulty = bool(options.fault) and step >= options.at_step
            is_guilty = dist.get_rank() == options.guilty
            if faulty and is_guilty and options.mark:
                Path(options.mark).write_text(str(time.time()))
            if faulty and is_guilty and options.fault == "sharded-step-alone":
                optimizer.step()
            elif sharded and (is_guilty or not faulty):
                validate(model, generator)
            elif is_guilty:
                validate(model if faulty else model.module, generator)
            dist.barrier()
        time.sleep(0.005)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
