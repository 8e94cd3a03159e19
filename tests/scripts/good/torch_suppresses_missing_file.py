import contextlib
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from mylib import build, batches

local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
with contextlib.suppress(FileNotFoundError):
    os.remove("old.log")
dist.init_process_group("nccl")
model = DDP(build().cuda(local), device_ids=[local])
for batch in batches(dist.get_rank()):
    with contextlib.nullcontext():
        model(batch.cuda(local)).sum().backward()
