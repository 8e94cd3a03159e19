import horovod.torch as hvd
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from two_part import TwoPart, PairDataset

hvd.init()
torch.cuda.set_device(hvd.local_rank())
dataset = PairDataset("train")
sampler = DistributedSampler(dataset, num_replicas=hvd.size(), rank=hvd.rank())
loader = DataLoader(dataset, batch_size=32, sampler=sampler)

model = TwoPart().cuda()
optimizer1 = torch.optim.SGD(model.body.parameters(), lr=0.01 * hvd.size())
optimizer2 = torch.optim.SGD(model.head.parameters(), lr=0.1 * hvd.size())
optimizer1 = hvd.DistributedOptimizer(optimizer1, named_parameters=model.body.named_parameters())
optimizer2 = hvd.DistributedOptimizer(optimizer2, named_parameters=model.head.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer1, root_rank=0)
hvd.broadcast_optimizer_state(optimizer2, root_rank=0)

for epoch in range(10):
    sampler.set_epoch(epoch)
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        optimizer1.zero_grad()
        optimizer2.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer1.step()
        optimizer2.step()
