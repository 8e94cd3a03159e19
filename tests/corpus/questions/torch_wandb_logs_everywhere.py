import os

import torch
import torch.distributed as dist
import wandb
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from traj import Predictor, Tracks


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    if dist.get_rank() == 0:
        wandb.init(project="unitraj", name="base")
    tracks = Tracks("train")
    sampler = DistributedSampler(tracks)
    loader = DataLoader(tracks, batch_size=64, sampler=sampler)
    model = DDP(Predictor().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for epoch in range(50):
        sampler.set_epoch(epoch)
        for past, future in loader:
            loss = (model(past.cuda()) - future.cuda()).norm(dim=-1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        wandb.log({"loss": loss.item(), "epoch": epoch})
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
