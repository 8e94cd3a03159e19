import functools
import os
import torch
import torch.distributed as dist
from mylib import build, batches


def master_only(func):
    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        if dist.get_rank() == 0:
            return func(*args, **kwargs)
    return wrapper


@master_only
def log_losses(losses):
    for name in sorted(losses):
        dist.reduce(losses[name], dst=0)
        print(name, losses[name].item())


def main():
    dist.init_process_group("nccl")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    model = torch.nn.parallel.DistributedDataParallel(build().cuda())
    for batch in batches():
        losses = model(batch)
        sum(losses.values()).backward()
        log_losses(losses)


main()
