import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from climate import ERA5, FNO


def init_distributed_mode(args):
    args["rank"] = int(os.environ["SLURM_LOCALID"])
    args["world_size"] = int(os.environ["SLURM_NTASKS"])
    args["gpu"] = args["rank"] % torch.cuda.device_count()
    torch.cuda.set_device(args["gpu"])
    dist.init_process_group(
        backend="nccl",
        init_method="env://",
        world_size=args["world_size"],
        rank=args["rank"],
    )


def main():
    args = {"lr": 1e-3, "epochs": 20}
    init_distributed_mode(args)
    ds = ERA5("/scratch/era5")
    sampler = DistributedSampler(ds, num_replicas=args["world_size"], rank=args["rank"])
    loader = DataLoader(ds, batch_size=2, sampler=sampler, num_workers=4)
    net = DDP(FNO().cuda(), device_ids=[args["gpu"]])
    opt = torch.optim.Adam(net.parameters(), lr=args["lr"])
    for epoch in range(args["epochs"]):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = (net(x.cuda()) - y.cuda()).abs().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()


if __name__ == "__main__":
    main()
