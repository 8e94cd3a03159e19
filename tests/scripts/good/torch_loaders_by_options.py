import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from mylib import Net, Images

local = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl")
torch.cuda.set_device(local)
model = DDP(Net().cuda(local), device_ids=[local])
common = {"batch_size": 64, "num_workers": 4}
images = Images("train")
sampler = DistributedSampler(images)
train = DataLoader(images, sampler=sampler, shuffle=False, **common)
val = DataLoader(Images("val"), **common)
for epoch in range(10):
    sampler.set_epoch(epoch)
    for x, y in train:
        torch.nn.functional.cross_entropy(model(x.cuda(local)), y.cuda(local)).backward()
    model.eval()
    with torch.no_grad():
        hits = sum((model.module(x.cuda(local)).argmax(1).cpu() == y).sum() for x, y in val)
