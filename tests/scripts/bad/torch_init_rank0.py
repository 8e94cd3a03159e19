import os
import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
if rank == 0:
    dist.init_process_group("gloo")
