import os

import torch
import torch.distributed as dist
from mylib import batches, build


def main():
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl")
    model = torch.nn.parallel.DistributedDataParallel(build().to(gpu), device_ids=[gpu])
    optim = torch.optim.AdamW(model.parameters())
    for batch in batches(gpu):
        loss = model(batch)
        seen = loss.detach().clone()
        dist.all_reduce(seen)
        if torch.isnan(seen):
            print("left out")
            continue
        optim.zero_grad()
        loss.backward()
        optim.step()


main()
