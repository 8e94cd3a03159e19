"""Four moments of one rank, as time.time(): its first line, init done, first DDP step done, last line.

They are printed, and written to ``rank-N.json`` in the folder of ``--marks``.
"""
# ruff: noqa: E402 - the first moment comes before every other import

import time

FIRST_LINE = time.time()

import argparse
import json
import os
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--marks", type=Path, required=True, help="folder for the moments")
    parser.add_argument("--first-line-only", action="store_true", help="without any framework")
    options = parser.parse_args()
    moments = {"first line": FIRST_LINE}
    if not options.first_line_only:
        train(moments)
    moments["end"] = time.time()
    text = json.dumps(moments)
    print(text, flush=True)
    (options.marks / f"rank-{os.environ.get('RANK', '0')}.json").write_text(text)


def train(moments):
    import torch
    import torch.distributed as dist
    import torch.distributed.nn  # imported by DDP after init, it would keep the group from its end
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    moments["init done"] = time.time()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    images, labels = torch.randn(8, 64), torch.randint(0, 2, (8,))
    nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
    moments["first step"] = time.time()
    # PyTorch 2.13 hangs when the group ends while a Gloo thread still lets go of its last work.
    time.sleep(0.2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
