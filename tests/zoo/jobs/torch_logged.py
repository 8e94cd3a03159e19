"""Two ranks that train; rank 0 logs for TensorBoard into runs/exp."""

import os
import time

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from tensorboardX import SummaryWriter
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
writer = SummaryWriter("runs/exp") if dist.get_rank() == 0 else None
model = DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(int(os.environ["STEPS"])):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    if writer is not None:
        writer.add_scalar("loss", loss.item(), step)
        writer.flush()  # SIGTERM ends it without
    time.sleep(0.02)
dist.destroy_process_group()
