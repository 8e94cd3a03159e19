import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from mylib import Net, Numbers

dist.init_process_group(backend="nccl", init_method="env://")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = DDP(Net().to(device))
data = Numbers()
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=32, sampler=sampler)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(5):
    sampler.set_epoch(epoch)
    for x, y in loader:
        opt.zero_grad()
        torch.nn.functional.cross_entropy(net(x.to(device)), y.to(device)).backward()
        opt.step()
