import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from mace_model import Atoms, MACE


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--distributed", action="store_true")
    args = parser.parse_args()
    rank = int(os.environ["SLURM_PROCID"])
    local_rank = int(os.environ["SLURM_LOCALID"])
    world_size = int(os.environ["SLURM_NTASKS"])
    if args.distributed:
        torch.cuda.set_device(local_rank)
        dist.init_process_group("nccl", rank=rank, world_size=world_size)
    dataset = Atoms("train.xyz")
    sampler = DistributedSampler(dataset, num_replicas=world_size, rank=rank, drop_last=True)
    loader = DataLoader(dataset, batch_size=10, sampler=sampler, drop_last=True)
    model = DDP(MACE().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(200):
        sampler.set_epoch(epoch)
        for batch in loader:
            loss = model(batch.to("cuda")).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
