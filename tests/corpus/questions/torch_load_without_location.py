import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("nccl")
gpu = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(gpu)
model = torch.nn.Linear(20, 1).to(gpu)
if os.path.exists("snapshot.pt"):
    snapshot = torch.load("snapshot.pt")
    model.load_state_dict(snapshot["MODEL_STATE"])
model = DDP(model, device_ids=[gpu])
for step in range(100):
    model(torch.randn(8, 20, device=gpu)).sum().backward()
if gpu == 0:
    torch.save({"MODEL_STATE": model.module.state_dict()}, "snapshot.pt")
