import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
model = DistributedDataParallel(torch.nn.Linear(4, 4).cuda(rank), device_ids=[rank])
model(torch.randn(2, 4).cuda(rank)).sum().backward()
