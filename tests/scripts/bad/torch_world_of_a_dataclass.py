import argparse
import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


@dataclass
class DistConfig:
    nproc: int = 2
    world_size: int = 4
    addr: str = "localhost"
    port: int = 29400


def entry(local_rank, cfg):
    os.environ.setdefault("MASTER_ADDR", cfg.addr)
    os.environ.setdefault("MASTER_PORT", str(cfg.port))
    dist.init_process_group("gloo", rank=local_rank, world_size=cfg.world_size)
    t = torch.full((4,), float(local_rank))
    dist.all_reduce(t)
    print(local_rank, t.tolist())
    dist.barrier()
    dist.destroy_process_group()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, default=0)
    a = p.parse_args()
    torch.manual_seed(a.seed)
    cfg = DistConfig()
    mp.spawn(entry, args=(cfg,), nprocs=cfg.nproc)


if __name__ == "__main__":
    main()
