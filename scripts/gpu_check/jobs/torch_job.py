"""A small DDP training on a GPU or a CPU."""

import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--backend", default="nccl")
parser.add_argument("--device", default="cuda")
parser.add_argument("--steps", type=int, default=30)
options = parser.parse_args()

local_rank = int(os.environ.get("LOCAL_RANK", "0"))
name = options.device
if name == "cuda":
    name = f"cuda:{local_rank % torch.cuda.device_count()}"
device = torch.device(name)
if device.type == "cuda":
    torch.cuda.set_device(device)
dist.init_process_group(options.backend)
torch.manual_seed(1)
model = DistributedDataParallel(torch.nn.Linear(64, 8).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(options.steps):
    loss = model(torch.randn(32, 64, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total = torch.ones(1, device=device)
    dist.all_reduce(total)
    assert int(total.item()) == dist.get_world_size()
    if step == 2:
        print("ready", flush=True)
print(f"trained {options.steps} steps on {device}, loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
