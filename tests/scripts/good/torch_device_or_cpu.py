import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler
from mylib import Net, Numbers

dist.init_process_group(backend="nccl" if torch.cuda.is_available() else "gloo")
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
net = DDP(Net().to(device))
data = Numbers()
sampler = DistributedSampler(data)
loader = DataLoader(data, **dict(batch_size=32, sampler=sampler))
for epoch in range(5):
    sampler.set_epoch(epoch)
    for x, y in loader:
        torch.nn.functional.cross_entropy(net(x.to(device)), y.to(device)).backward()
