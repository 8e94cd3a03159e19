import os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from mylib import Images


class Trainer:
    def __init__(self):
        self.gpu = int(os.environ["LOCAL_RANK"])
        torch.cuda.set_device(self.gpu)
        dist.init_process_group("nccl")
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.LazyLinear(10))
        self.model = DistributedDataParallel(net.cuda(self.gpu), device_ids=[self.gpu])
        self.sampler = DistributedSampler(Images("train"))
        self.train = DataLoader(Images("train"), 64, sampler=self.sampler)
        self.val = DataLoader(Images("val"), 64)

    def validate(self):
        self.model.eval()
        hits = 0
        for x, y in self.val:
            hits += (self.model(x.cuda(self.gpu)).argmax(1).cpu() == y).sum().item()
        return hits

    def fit(self):
        opt = torch.optim.SGD(self.model.parameters(), 0.1)
        for epoch in range(10):
            self.sampler.set_epoch(epoch)
            self.model.train()
            for x, y in self.train:
                opt.zero_grad()
                nn.functional.cross_entropy(self.model(x.cuda()), y.cuda()).backward()
                opt.step()
            if dist.get_rank() == 0:
                print(epoch, self.validate())


Trainer().fit()
