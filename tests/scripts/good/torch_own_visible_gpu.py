import os
os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["LOCAL_RANK"]
import torch
import torch.distributed as dist
from mylib import build, batches

dist.init_process_group("nccl")
model = torch.nn.parallel.DistributedDataParallel(build().cuda())
for b in batches(dist.get_rank()):
    model(b.cuda()).sum().backward()
