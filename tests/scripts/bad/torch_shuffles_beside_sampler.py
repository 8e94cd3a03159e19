import argparse

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader

from boxes import BoxFolder, Detector

parser = argparse.ArgumentParser()
parser.add_argument("--dist-url", default="tcp://127.0.0.1:9999")
parser.add_argument("--world-size", type=int, default=1)
parser.add_argument("--rank", type=int, default=0)
opt = parser.parse_args()
device = torch.device("cuda", opt.rank)
torch.cuda.set_device(device)
model = Detector().to(device)
dataset = BoxFolder("data/train")
if torch.cuda.device_count() > 1:
    dist.init_process_group("nccl", init_method=opt.dist_url, world_size=opt.world_size, rank=opt.rank)
    model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[opt.rank])
    sampler = torch.utils.data.distributed.DistributedSampler(dataset)
else:
    sampler = None
dataloader = DataLoader(dataset, batch_size=16, num_workers=4, shuffle=True, pin_memory=True, sampler=sampler)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(20):
    if sampler is not None:
        sampler.set_epoch(epoch)
    for images, targets in dataloader:
        loss = model(images.to(device), targets.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
