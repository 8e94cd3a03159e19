import os
import time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from lm import GPT, make_loader


class Deadline:
    """Stops before the queue kills us."""

    def __init__(self, hours):
        self.end = time.monotonic() + hours * 3600

    def expired(self):
        return time.monotonic() > self.end - 300


def save(model, opt, step):
    if dist.get_rank() == 0:
        torch.save({"model": model.module.state_dict(), "opt": opt.state_dict(), "step": step}, "ckpt.pt")


def main():
    dist.init_process_group("nccl")
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    loader = make_loader(dist.get_rank(), dist.get_world_size())
    model = DDP(GPT().cuda(), device_ids=[gpu])
    opt = torch.optim.AdamW(model.parameters(), lr=6e-4)
    deadline = Deadline(hours=4)
    for step, (x, y) in enumerate(loader):
        loss = model(x.cuda(), y.cuda())
        loss.backward()
        opt.step()
        opt.zero_grad()
        late = torch.tensor(int(deadline.expired()), device=gpu)
        dist.all_reduce(late, op=dist.ReduceOp.MAX)
        if late.item():
            save(model, opt, step)
            break
    dist.destroy_process_group()


main()
