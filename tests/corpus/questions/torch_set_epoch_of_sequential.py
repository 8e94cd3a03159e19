import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from mini import Model, Texts


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    train, val = Texts("train"), Texts("val")
    train_loader = DataLoader(train, batch_size=8, sampler=DistributedSampler(train))
    val_loader = DataLoader(val, batch_size=8, shuffle=False)
    model = DDP(Model().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for epoch in range(3):
        train_loader.sampler.set_epoch(epoch)
        for batch in train_loader:
            loss = model(batch.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        val_loader.sampler.set_epoch(epoch)
        model.eval()
        with torch.no_grad():
            total = sum(model.module(batch.cuda()) for batch in val_loader)
        dist.all_reduce(total)
        model.train()
        if dist.get_rank() == 0:
            print(epoch, total.item() / len(val_loader) / dist.get_world_size())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
