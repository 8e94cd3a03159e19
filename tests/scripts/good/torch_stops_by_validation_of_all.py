import os
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from data import make_loaders
from model import Net


class EarlyStopping:
    def __init__(self, patience=5):
        self.patience = patience
        self.best = float("inf")
        self.bad_epochs = 0

    def __call__(self, metric):
        if metric < self.best:
            self.best = metric
            self.bad_epochs = 0
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience


def validate(model, loader, device):
    model.eval()
    total, n = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            total += F.mse_loss(model(x.to(device)), y.to(device), reduction="sum").item()
            n += len(x)
    t = torch.tensor([total, n], device=device)
    dist.all_reduce(t)
    return (t[0] / t[1]).item()


def main():
    dist.init_process_group("nccl")
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    train_loader, val_loader, sampler = make_loaders(dist.get_world_size(), dist.get_rank())
    model = DDP(Net().to(device), device_ids=[device])
    opt = torch.optim.Adam(model.parameters())
    stopper = EarlyStopping()
    for epoch in range(200):
        sampler.set_epoch(epoch)
        model.train()
        for x, y in train_loader:
            opt.zero_grad()
            F.mse_loss(model(x.to(device)), y.to(device)).backward()
            opt.step()
        val = validate(model, val_loader, device)
        if stopper(val):
            print(f"rank {dist.get_rank()} stops at {epoch}")
            break
    dist.barrier()
    dist.destroy_process_group()


main()
