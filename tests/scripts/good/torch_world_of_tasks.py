import os
import torch
import torch.distributed as dist
from mylib import fit

rank = int(os.environ["SLURM_PROCID"])
nodes = int(os.environ["SLURM_NNODES"])
world = nodes * int(os.environ["SLURM_NTASKS_PER_NODE"])
torch.cuda.set_device(int(os.environ["SLURM_LOCALID"]))
dist.init_process_group("nccl", rank=rank, world_size=world)
fit(rank)
