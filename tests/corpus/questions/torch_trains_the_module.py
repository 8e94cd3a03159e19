import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
model = DistributedDataParallel(torch.nn.Linear(16, 16).cuda(), device_ids=[local_rank])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
unwrapped = model.module if isinstance(model, DistributedDataParallel) else model
for step in range(1000):
    batch = torch.randn(8, 16).cuda()
    logits = unwrapped(batch)
    loss = (logits ** 2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if dist.get_rank() == 0 and step % 100 == 0:
        torch.save(model.module.state_dict(), "policy.pt")
dist.destroy_process_group()
