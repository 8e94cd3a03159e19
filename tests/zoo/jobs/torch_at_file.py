"""Two ranks meet at a file, again after a destroy in good order (one after the other: where both do so at one
moment, torch may leave the file); with "killed" they end as if by a signal, with "ddp" at the end of the
script, which destroys nothing."""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

URL = f"file://{sys.argv[1]}"
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
for turn in range(1 if "killed" in sys.argv or "ddp" in sys.argv else 2):
    dist.init_process_group("gloo", init_method=URL, rank=rank, world_size=size)
    dist.all_reduce(torch.ones(3))
    dist.barrier()
    if "killed" in sys.argv:
        os._exit(0)
    if "ddp" in sys.argv:
        model = DistributedDataParallel(torch.nn.Linear(2, 2))
        model(torch.ones(1, 2)).sum().backward()
        break
    time.sleep(0.3 * rank)
    dist.destroy_process_group()
    print("met", turn, flush=True)
