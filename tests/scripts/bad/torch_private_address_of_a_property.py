import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class Settings:
    master: str = "192.168.1.104"
    port: int = 29501
    backend: str = "nccl"

    @property
    def url(self):
        return f"tcp://{self.master}:{self.port}"


def setup(s: Settings):
    rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
    local = int(os.environ["SLURM_LOCALID"])
    torch.cuda.set_device(local)
    dist.init_process_group(s.backend, init_method=s.url, rank=rank, world_size=world)
    return local


def main():
    local = setup(Settings())
    model = DDP(torch.nn.Linear(10, 10).to(local), device_ids=[local])
    opt = torch.optim.Adam(model.parameters())
    for _ in range(1000):
        loss = model(torch.randn(16, 10, device=local)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
