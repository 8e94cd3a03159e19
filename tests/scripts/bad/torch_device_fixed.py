import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group(backend="nccl")
device = torch.device("cuda:0")
torch.cuda.set_device(device)
model = DDP(torch.nn.Linear(4, 1).to(device), device_ids=[0])
train(model)
