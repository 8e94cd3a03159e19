import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils import data
from mylib import Net, Images

local = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl")
torch.cuda.set_device(local)
model = DDP(Net().cuda(local), device_ids=[local])
options = {"batch_size": 64, "shuffle": True, "num_workers": 4, "pin_memory": True}
train = data.DataLoader(Images("train"), **options)
opt = torch.optim.SGD(model.parameters(), 0.1)
for epoch in range(10):
    for x, y in train:
        opt.zero_grad()
        torch.nn.functional.cross_entropy(model(x.cuda(local)), y.cuda(local)).backward()
        opt.step()
