import os
from dataclasses import dataclass

import torch
from torch import distributed as D
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@dataclass
class TrainConfig:
    backend: str = "nccl"
    device: str = "cuda"
    lr: float = 3e-4
    epochs: int = 4


class Trainer:
    def __init__(self, cfg: TrainConfig):
        self.cfg = cfg
        D.init_process_group(cfg.backend)
        self.rank = D.get_rank()
        if cfg.device == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        self.model = DDP(nn.Linear(64, 64).to(cfg.device))
        ds = TensorDataset(torch.randn(1000, 64))
        self.sampler = DistributedSampler(ds)
        self.loader = DataLoader(ds, 32, sampler=self.sampler)

    def save(self, epoch):
        if self.rank == 0:
            torch.save(self.model.module.state_dict(), f"{epoch}.pt")
        D.barrier()

    def train(self):
        opt = torch.optim.AdamW(self.model.parameters(), lr=self.cfg.lr)
        for epoch in range(self.cfg.epochs):
            self.sampler.set_epoch(epoch)
            for (x,) in self.loader:
                x = x.to(self.cfg.device)
                opt.zero_grad()
                self.model(x).pow(2).mean().backward()
                opt.step()
            self.save(epoch)


if __name__ == "__main__":
    Trainer(TrainConfig()).train()
    D.destroy_process_group()
