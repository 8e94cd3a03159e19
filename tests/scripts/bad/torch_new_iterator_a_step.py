import torch, torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler
dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1,1))
for step in range(1000):
    loader = DataLoader(dataset, batch_size=8, sampler=DistributedSampler(dataset), num_workers=4)
    x, y = next(iter(loader))
    model(x).sum().backward()
