import os
import torch
import torch.distributed as dist
from mylib import build, batches, tracker

local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
model = torch.nn.parallel.DistributedDataParallel(build().cuda(), device_ids=[local])
for step, batch in enumerate(batches()):
    model(batch).sum().backward()
    if dist.get_rank() == 0:
        try:
            tracker.log({"step": step})
        except ConnectionError as error:
            print("not logged", error)
