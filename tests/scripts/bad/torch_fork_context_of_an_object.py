import multiprocessing
import torch
from torch import distributed as td

device_names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
table = torch.zeros(1000, 16, device="cuda:0")


class Launcher:
    def __init__(self, size):
        self.size = size
        self.ctx = multiprocessing.get_context("fork")

    def _child(self, rank):
        torch.cuda.set_device(rank)
        td.init_process_group("nccl", init_method="tcp://localhost:41000", rank=rank, world_size=self.size)
        v = torch.ones(10, device=f"cuda:{rank}")
        td.all_reduce(v)
        print(device_names[rank], v.sum().item())

    def __enter__(self):
        self.procs = [self.ctx.Process(target=self._child, args=(r,)) for r in range(self.size)]
        for p in self.procs:
            p.start()
        return self

    def __exit__(self, *exc):
        for p in self.procs:
            p.join()


if __name__ == "__main__":
    with Launcher(len(device_names)) as launcher:
        print("started", launcher.size)
