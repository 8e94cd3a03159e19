import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils import data as tud


class LoaderFactory:
    def __init__(self, batch_size, workers=4):
        self.common = dict(batch_size=batch_size, num_workers=workers, pin_memory=True)
        self.samplers = []

    def train(self, dataset):
        kw = dict(self.common, sampler=tud.DistributedSampler(dataset))
        self.samplers.append(kw["sampler"])
        return tud.DataLoader(dataset, drop_last=True, **kw)

    def set_epoch(self, epoch):
        for s in self.samplers:
            s.set_epoch(epoch)


def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl")
    factory = LoaderFactory(128)
    loader = factory.train(tud.TensorDataset(torch.randint(0, 64, (1000, 8))))
    model = DDP(torch.nn.Embedding(64, 32).cuda(local), device_ids=[local])
    opt = torch.optim.Adam(model.parameters())
    for epoch in range(10):
        factory.set_epoch(epoch)
        for (batch,) in loader:
            loss = model(batch.cuda(local)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()


if __name__ == "__main__":
    main()
