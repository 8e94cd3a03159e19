import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from seg import Cityscapes, UNet


class Env:
    def __init__(self):
        self.rank = int(os.environ["SLURM_PROCID"])
        self.world = int(os.environ["SLURM_NTASKS"])
        self.nodes = int(os.environ["SLURM_NNODES"])


def main():
    env = Env()
    dist.init_process_group("nccl", rank=env.rank, world_size=env.world)
    torch.cuda.set_device(env.rank)
    ds = Cityscapes("/scratch/cityscapes")
    sampler = DistributedSampler(ds, num_replicas=env.world, rank=env.rank)
    loader = DataLoader(ds, batch_size=4, sampler=sampler, num_workers=8)
    net = DDP(UNet().cuda(env.rank), device_ids=[env.rank])
    opt = torch.optim.SGD(net.parameters(), lr=0.01 * env.nodes, momentum=0.9)
    for epoch in range(100):
        sampler.set_epoch(epoch)
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda(), ignore_index=255)
            opt.zero_grad()
            loss.backward()
            opt.step()


if __name__ == "__main__":
    main()
