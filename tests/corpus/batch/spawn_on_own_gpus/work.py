import os

import torch.distributed as dist
import torch.multiprocessing as mp


def work(i, n):
    size = int(os.environ["SLURM_NTASKS"]) * n
    dist.init_process_group("nccl", init_method="tcp://10.1.0.10:23456", world_size=size, rank=int(os.environ["SLURM_PROCID"]) * n + i)


if __name__ == "__main__":
    mp.spawn(work, args=(4,), nprocs=4)
