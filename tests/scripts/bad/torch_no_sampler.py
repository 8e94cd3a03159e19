import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset

dist.init_process_group("gloo")
dataset = TensorDataset(torch.randn(512, 2), torch.randn(512, 1))
loader = DataLoader(dataset, batch_size=16, shuffle=True)
model = DDP(torch.nn.Linear(2, 1))
for x, y in loader:
    torch.nn.functional.mse_loss(model(x), y).backward()
