import os
import torch
import torch.distributed as dist
from mylib import build, batches

local = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local)
dist.init_process_group("nccl")
model = torch.nn.parallel.DistributedDataParallel(build().cuda(local), device_ids=[local])
for batch in batches():
    failed = torch.zeros(1, device="cuda")
    try:
        loss = model(batch)
    except RuntimeError as error:
        if "out of memory" not in str(error):
            raise
        failed.fill_(1)
    dist.all_reduce(failed)
    if failed.item():
        torch.cuda.empty_cache()
        continue
    loss.backward()
