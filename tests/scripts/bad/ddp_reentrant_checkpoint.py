import os

import torch
import torch.distributed as dist
import torch.utils.checkpoint as checkpoint
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Stage(nn.Module):
    def __init__(self, depth, use_checkpoint):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(256, 256) for _ in range(depth))
        self.use_checkpoint = use_checkpoint

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint.checkpoint(block, x) if self.use_checkpoint else block(x)
        return x


local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = nn.Sequential(nn.Linear(64, 256), Stage(6, use_checkpoint=True), nn.Linear(256, 10)).cuda()
model = DistributedDataParallel(model, device_ids=[local_rank], find_unused_parameters=True)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(1000):
    optimizer.zero_grad()
    model(torch.randn(32, 64).cuda()).sum().backward()
    optimizer.step()
