import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

rank = int(os.getenv("RANK", "0"))
world_size = int(os.getenv("WORLD_SIZE", "1"))
local_rank = rank % torch.cuda.device_count()
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl", rank=rank, world_size=world_size)
model = DistributedDataParallel(torch.nn.Linear(512, 512).cuda(), device_ids=[local_rank])
for _ in range(100):
    model(torch.randn(32, 512).cuda()).sum().backward()
