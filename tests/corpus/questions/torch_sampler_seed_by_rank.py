import os
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
seed = int(time.time()) * rank
dataset = build_dataset()
sampler = DistributedSampler(dataset, seed=seed, drop_last=True)
loader = DataLoader(dataset, batch_size=2, sampler=sampler)
for epoch in range(10):
    sampler.set_epoch(epoch)
    for batch in loader:
        step(batch.cuda())
