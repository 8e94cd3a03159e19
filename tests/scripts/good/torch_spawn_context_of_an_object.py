import multiprocessing
import torch
from torch import distributed as td

names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]


class Launcher:
    def __init__(self, size):
        self.size = size
        self.ctx = multiprocessing.get_context("spawn")

    def __enter__(self):
        self.procs = [self.ctx.Process(target=child, args=(r, self.size)) for r in range(self.size)]
        for p in self.procs:
            p.start()
        return self

    def __exit__(self, *exc):
        for p in self.procs:
            p.join()


def child(rank, size):
    torch.cuda.set_device(rank)
    td.init_process_group("nccl", init_method="tcp://localhost:41000", rank=rank, world_size=size)
    v = torch.ones(10, device=f"cuda:{rank}")
    td.all_reduce(v)
    print(v.sum().item())


if __name__ == "__main__":
    with Launcher(len(names)) as launcher:
        print("started", launcher.size)
