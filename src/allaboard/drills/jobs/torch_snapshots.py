"""A small training loop that averages its gradients by hand and has helpers, and fails as --fault names.

The faults are in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import gc
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

# Thousands of modules are loaded, and looking all through for garbage takes a fifth of that.
gc.set_threshold(50_000, 20, 1_000)

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from torch import nn


def snapshot(weight):
    """Work on a copy of the weights in a forked process: OpenMP's threads are not forked with it."""
    child = os.fork()
    if child == 0:
        powers = weight @ weight.T
        os._exit(int(powers.isnan().any()))
    os.waitpid(child, 0)


def decode(pool, number):
    """Decode a sample in two parts, which are tasks of the same pool."""
    parts = [pool.submit(torch.full, (8,), float(number)) for _ in range(2)]
    return torch.stack([part.result() for part in parts])


def decode_batch(pool):
    samples = [pool.submit(decode, pool, number) for number in range(4)]
    return [sample.result() for sample in samples]


def fail(name, pool, weight):
    """Stage the fault in the middle of training."""
    if name == "forked-native":
        snapshot(weight)
    elif name == "nested-pool":
        decode_batch(pool)


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
    parser.add_argument("--timeout", type=float, default=1800)
    parser.add_argument("--mark")
    options = parser.parse_args()
    guilty = int(os.environ["RANK"]) == options.guilty
    torch.set_num_threads(2)
    dist.init_process_group("gloo", timeout=timedelta(seconds=options.timeout))
    pool = ThreadPoolExecutor(2)
    model = nn.Linear(512, 512)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(1, options.steps + 1):
        optimizer.zero_grad()
        model(torch.randn(64, 512)).square().mean().backward()
        dist.all_reduce(model.weight.grad)
        optimizer.step()
        if guilty and step == options.at_step:
            mark(options.mark)
            fail(options.fault, pool, model.weight.detach())
        time.sleep(0.005)
    time.sleep(0.3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
