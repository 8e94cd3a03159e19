"""A DDP job whose ranks leave the moments of each round, as time.time(): first line, init done, first step.

In round 0 it trains until it is ended from outside; in a later round it does a few steps and ends.
"""
# ruff: noqa: E402 - the first moment comes before every other import

import time

FIRST_LINE = time.time()

import argparse
import json
import os
from pathlib import Path

ROUND = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--marks", type=Path, required=True, help="folder for the moments")
    options = parser.parse_args()
    import torch
    import torch.distributed as dist
    import torch.distributed.nn  # imported by DDP after init, it would keep the group from its end
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    moments = {"pid": os.getpid(), "first line": FIRST_LINE, "torch": time.time()}
    dist.init_process_group("gloo")
    moments["init done"] = time.time()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    images, labels = torch.randn(8, 64), torch.randint(0, 2, (8,))
    for step in range(10 if ROUND else 100_000):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        if step == 0:
            moments["first step"] = time.time()
            new = options.marks / f"new-{ROUND}-{dist.get_rank()}"
            new.write_text(json.dumps(moments))
            new.replace(options.marks / f"round-{ROUND}-rank-{dist.get_rank()}.json")
        time.sleep(0.005)
    # PyTorch 2.13 hangs when the group ends while a Gloo thread still lets go of its last work.
    time.sleep(0.2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
