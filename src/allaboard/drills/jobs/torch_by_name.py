"""A small loop that averages the gradients of equal layers by hand, one by one, in the order of a dict.

With ``crossed-tensors`` the guilty rank fills its dict in another order after some steps, as a rank does that
reads its names from a set or a folder. Nothing in here uses allaboard.
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


class Tower(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.layers = nn.ModuleDict({name: nn.Linear(32, 32) for name in names})
        self.head = nn.Linear(32, 2)

    def forward(self, images):
        for layer in self.layers.values():
            images = torch.tanh(layer(images))
        return self.head(images)


def average(weights, size):
    for weight in weights.values():
        dist.all_reduce(weight.grad.data)
        weight.grad.data /= size


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mark")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    names = ["stem", "wide", "deep", "late"]
    model = Tower(names)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    generator = torch.Generator().manual_seed(dist.get_rank())
    guilty = dist.get_rank() == options.guilty and options.fault == "crossed-tensors"
    for step in range(1, options.steps + 1):
        images = torch.randn(8, 32, generator=generator)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), (images.sum(1) > 0).long()).backward()
        crossed = guilty and step >= options.at_step
        if guilty and step == options.at_step and options.mark:
            Path(options.mark).write_text(str(time.time()))
        order = sorted(names) if crossed else names
        average({name: model.layers[name].weight for name in order}, dist.get_world_size())
        optimizer.step()
        time.sleep(0.005)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
