import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from mylib import build, batches


class Trainer:
    def __init__(self, local):
        torch.cuda.set_device(local)
        dist.init_process_group("nccl")
        self.is_first = dist.get_rank() == 0
        self.model = DistributedDataParallel(build().cuda(), device_ids=[local])

    def _write(self, step):
        if not self.is_first:
            return
        torch.save(self.model.module.state_dict(), f"step-{step}.pt")

    def save(self, step):
        self._write(step)
        dist.barrier()

    def fit(self):
        for step, batch in enumerate(batches()):
            self.model(batch).sum().backward()
            if step % 1000 == 999:
                self.save(step)
