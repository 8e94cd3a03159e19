import contextlib
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from mylib import build, batches

local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
model = DDP(build().cuda(local), device_ids=[local])
opt = torch.optim.SGD(model.parameters(), 0.1)
for batch in batches(dist.get_rank()):
    with contextlib.suppress(RuntimeError):
        opt.zero_grad()
        model(batch.cuda(local)).sum().backward()
        opt.step()
