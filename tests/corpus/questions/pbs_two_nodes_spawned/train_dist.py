import torch.distributed as dist
from torch.multiprocessing import Process

from work import run


def init_processes(rank, size, fn, backend="gloo"):
    dist.init_process_group(backend, init_method="tcp://172.16.1.186:2222", rank=rank, world_size=size)
    fn(rank, size)


if __name__ == "__main__":
    size = 2
    processes = []
    for rank in range(size):
        p = Process(target=init_processes, args=(rank, size, run))
        p.start()
        processes.append(p)
    for p in processes:
        p.join()
