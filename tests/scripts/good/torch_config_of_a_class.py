import os
import torch.distributed as dist
import torch.multiprocessing as mp


class Config:
    world_size = 2
    master_addr = "127.0.0.1"


def main(rank, cfg):
    os.environ["MASTER_ADDR"] = cfg.master_addr
    os.environ["MASTER_PORT"] = "29555"
    dist.init_process_group("gloo", rank=rank, world_size=cfg.world_size)
    dist.barrier()


if __name__ == "__main__":
    mp.spawn(main, args=(Config,), nprocs=Config.world_size)
