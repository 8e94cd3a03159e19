"""A small data-parallel job in which one rank does something beside the training, as --fault names: it
compares two texts in a call that takes hours, or saves to a disk that stays full.

The fault is in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import difflib
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn


def compare(old_text, new_text):
    """Return how similar two outputs are; difflib compares every pair of letters."""
    return difflib.SequenceMatcher(None, old_text, new_text, autojunk=False).ratio()


def save(model, file):
    """Save, and retry until it has worked."""
    while True:
        try:
            torch.save(model.state_dict(), file)
            return
        except (OSError, RuntimeError) as error:
            print(f"cannot save: {error}", flush=True)
            time.sleep(0.5)


def beside(name, model):
    if name == "long-call":
        compare("ab" * 100_000, "ba" * 100_000)
    elif name == "disk-stays-full":
        save(model, "/dev/full")


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
    model = nn.Linear(64, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(1, options.steps + 1):
        optimizer.zero_grad()
        model(torch.randn(8, 64)).square().mean().backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        optimizer.step()
        time.sleep(0.005)
        if dist.get_rank() == options.guilty and step == options.at_step:
            if options.mark:
                Path(options.mark).write_text(str(time.time()))
            beside(options.fault, model)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
