import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from forces import ForceNet, TrajectoryDataset


@torch.no_grad()
def validate(model, loader, device):
    model.eval()
    total = torch.zeros(1, device=device)
    numel = torch.zeros(1, device=device)
    for batch in loader:
        batch = batch.to(device)
        out = model(batch)
        total += (out["forces"] - batch.force).abs().sum()
        numel += batch.force.numel()
        dist.all_reduce(total)
        dist.all_reduce(numel)
    mae = total / numel
    return mae.item()


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    device = torch.device("cuda", local_rank)
    train_set, val_set = TrajectoryDataset("train"), TrajectoryDataset("val")
    sampler = DistributedSampler(train_set)
    loader = DataLoader(train_set, batch_size=16, sampler=sampler)
    val_loader = DataLoader(val_set, batch_size=16, sampler=DistributedSampler(val_set, shuffle=False))
    model = DDP(ForceNet().to(device), device_ids=[local_rank])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(30):
        model.train()
        sampler.set_epoch(epoch)
        for batch in loader:
            batch = batch.to(device)
            loss = (model(batch)["forces"] - batch.force).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        mae = validate(model, val_loader, device)
        if dist.get_rank() == 0:
            print(epoch, mae)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
