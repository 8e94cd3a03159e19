from dataclasses import dataclass, field

import torch
from torch import distributed as D
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


@dataclass
class TrainConfig:
    backend: str = "nccl"
    device: str = "cuda"
    lr: float = 3e-4
    steps: int = 1000
    betas: tuple = field(default=(0.9, 0.95))


def get_model(cfg: TrainConfig) -> nn.Module:
    return DDP(nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)).to(cfg.device))


def main(cfg: TrainConfig) -> None:
    D.init_process_group(cfg.backend)
    rank = D.get_rank()
    torch.manual_seed(1337 + rank)
    model = get_model(cfg)
    opt = torch.optim.AdamW(model.parameters(), lr=cfg.lr, betas=cfg.betas)
    for step in range(cfg.steps):
        x = torch.randn(32, 64, device=cfg.device)
        loss = nn.functional.mse_loss(model(x), x)
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        if rank == 0 and step % 50 == 0:
            print(f"{step}: {loss.item():.4f}")
    D.destroy_process_group()


if __name__ == "__main__":
    main(TrainConfig())
