import os
import torch
import torch.distributed as dist

os.environ.update({
    "RANK": os.environ["SLURM_PROCID"],
    "WORLD_SIZE": os.environ["SLURM_NTASKS"],
    "LOCAL_RANK": os.environ["SLURM_LOCALID"],
})
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
x = torch.ones(1, device="cuda")
dist.all_reduce(x)
