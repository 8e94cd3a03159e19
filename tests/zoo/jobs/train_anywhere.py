"""A DDP script as people write it for a cluster: the rank is the launcher's, whichever that is."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

for rank, size in (
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
):
    if "RANK" not in os.environ and rank in os.environ:
        os.environ.update(RANK=os.environ[rank], WORLD_SIZE=os.environ[size])

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(20):
    images = torch.randn(8, 16)
    loss = nn.functional.cross_entropy(model(images), (images.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"rank {dist.get_rank()} of {dist.get_world_size()} trained 20 steps", flush=True)
dist.barrier()
dist.destroy_process_group()
