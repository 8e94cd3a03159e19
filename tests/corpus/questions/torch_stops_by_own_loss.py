import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler


class EarlyStopping:
    def __init__(self, patience=3):
        self.patience, self.best, self.bad, self.early_stop = patience, None, 0, False

    def __call__(self, loss):
        if self.best is None or loss < self.best:
            self.best, self.bad = loss, 0
        else:
            self.bad += 1
            self.early_stop = self.bad >= self.patience


dist.init_process_group("nccl")
gpu = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(gpu)
model = DDP(torch.nn.Linear(8, 1).cuda(), device_ids=[gpu])
optimizer = torch.optim.Adam(model.parameters())
sampler = DistributedSampler(train_set)
loader = DataLoader(train_set, sampler=sampler, batch_size=32)
held_out = DataLoader(test_set, sampler=DistributedSampler(test_set, shuffle=False), batch_size=32)
early_stopping = EarlyStopping()
for epoch in range(100):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = (model(x.cuda()) - y.cuda()).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val_loss = sum((model(x.cuda()) - y.cuda()).pow(2).mean().item() for x, y in held_out)
    early_stopping(val_loss)
    if early_stopping.early_stop:
        break
