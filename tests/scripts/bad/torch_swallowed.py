import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

dist.init_process_group("gloo")
model = DDP(torch.nn.Linear(2, 1))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(1000):
    try:
        loss = model(torch.randn(4, 2)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    except Exception as e:
        print("skipping batch", e)
