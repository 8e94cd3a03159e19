"""Two ranks that train; rank 0 logs into the tracker that TRACKER names."""

import os
import time
from importlib import import_module

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank, name = dist.get_rank(), os.environ["TRACKER"]
tracker = import_module(name) if rank == 0 else None
if tracker is not None:
    if name == "wandb":
        tracker.init(project="digits", group="night", name="exp")
    elif name == "mlflow":
        tracker.set_experiment("digits")
        tracker.start_run(run_name="exp")
    else:
        tracker.init(project="digits", group="night", name="exp", auto_log_gpu=False)
model = DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(int(os.environ["STEPS"])):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8)).square().mean()
    loss.backward()
    optimizer.step()
    if tracker is not None and name == "mlflow":
        tracker.log_metric("loss", loss.item(), step=step)
    elif tracker is not None:
        tracker.log({"loss": loss.item()})
    time.sleep(0.02)
if tracker is not None:
    tracker.end_run() if name == "mlflow" else tracker.finish()
dist.destroy_process_group()
