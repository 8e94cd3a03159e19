import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
model = DistributedDataParallel(torch.nn.Linear(16, 16).cuda(), device_ids=[local_rank])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for step in range(1000):
    loss = (model(torch.randn(8, 16).cuda()) ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if dist.get_rank() == 0 and step % 100 == 0:
        with torch.no_grad():
            print(model.module(torch.randn(8, 16).cuda()).mean())
dist.destroy_process_group()
