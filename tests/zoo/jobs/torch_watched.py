"""Two ranks that train; with HANG_AT, rank 1 sleeps at that step instead of going on."""

import os
import time

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
hang_at = int(os.environ.get("HANG_AT", "-1"))
begun_at = time.monotonic()
for step in range(int(os.environ["STEPS"])):
    if rank == 1 and step == hang_at:
        time.sleep(600)
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
    time.sleep(0.02)
if rank == 0:
    print(f"trained for {time.monotonic() - begun_at:.2f} s", flush=True)
dist.destroy_process_group()
