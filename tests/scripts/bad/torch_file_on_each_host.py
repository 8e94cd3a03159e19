import os

import torch.distributed as dist

rank = int(os.environ["SLURM_PROCID"])
size = int(os.environ["SLURM_NTASKS"])


dist.init_process_group(
    "nccl", init_method="file:///tmp/torch_sync", rank=rank, world_size=size, device_id=gpu
)
train()
