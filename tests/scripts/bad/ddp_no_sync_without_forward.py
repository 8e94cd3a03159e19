import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
dist.init_process_group('nccl')
local_rank = int(os.environ['LOCAL_RANK'])
rank = dist.get_rank()
world = dist.get_world_size()
torch.cuda.set_device(local_rank)
net = Net()
model = DDP(net.cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sampler = DistributedSampler(ds)
loader = DataLoader(ds, batch_size=8, sampler=sampler)
for epoch in range(9):
    sampler.set_epoch(epoch)
    for x in loader:
        optimizer.zero_grad()
        loss = model(x.cuda()).sum()
        with model.no_sync():
            loss.backward()
