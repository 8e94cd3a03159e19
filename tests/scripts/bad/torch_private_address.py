import os

import torch
import torch.distributed as dist

MASTER = "192.168.1.17"
rank = int(os.environ["SLURM_PROCID"])
size = int(os.environ["SLURM_NTASKS"])
dist.init_process_group(
    backend="gloo", init_method="tcp://" + MASTER + ":23456", world_size=size, rank=rank
)
train(torch.device("cpu"))
