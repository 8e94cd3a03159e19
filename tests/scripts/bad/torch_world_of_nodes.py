import os
import torch
import torch.distributed as dist
from mylib import fit

rank = int(os.environ["SLURM_PROCID"])
local = int(os.environ["SLURM_LOCALID"])
world = int(os.environ["SLURM_NNODES"])
torch.cuda.set_device(local)
dist.init_process_group("nccl", init_method="env://", rank=rank, world_size=world)
fit(rank, local)
