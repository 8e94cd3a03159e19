import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from mylib import build, batches


def main():
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(build().to(gpu), device_ids=[gpu])
    optim = torch.optim.AdamW(model.parameters())
    for batch in batches(gpu):
        try:
            loss = model(batch)
            loss.backward()
        except RuntimeError as e:
            if "out of memory" in str(e):
                print("skipping batch")
                torch.cuda.empty_cache()
                optim.zero_grad()
                continue
            raise
        optim.step()
        optim.zero_grad()


main()
