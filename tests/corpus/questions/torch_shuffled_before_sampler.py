import json
import os
import random

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler

dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
records = json.load(open("data.json"))
random.shuffle(records)
sampler = DistributedSampler(records)
loader = DataLoader(records, batch_size=8, sampler=sampler)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for batch in loader:
        step(batch)
