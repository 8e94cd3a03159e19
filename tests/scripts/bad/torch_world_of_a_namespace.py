import argparse, os
from types import SimpleNamespace
import torch, torch.distributed as dist
import torch.multiprocessing as mp


def get_cfg():
    return SimpleNamespace(gpus=2, world=8, backend="gloo")


def run(rank, cfg):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29501"
    dist.init_process_group(cfg.backend, rank=rank, world_size=cfg.world)
    x = torch.ones(1)
    dist.all_reduce(x)


if __name__ == "__main__":
    cfg = get_cfg()
    mp.spawn(run, nprocs=cfg.gpus, args=(cfg,))
