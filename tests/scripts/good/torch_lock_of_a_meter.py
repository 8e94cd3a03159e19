import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Meter:
    def __init__(self, lock):
        self.lock = lock
        self.total = torch.zeros(1)

    def _sync(self):
        dist.all_reduce(self.total)

    def update(self, value):
        self.lock.acquire()
        self.total += value
        self.lock.release()
        self._sync()


def work(rank, lock):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29544", rank=rank, world_size=2)
    meter = Meter(lock)
    for i in range(10):
        meter.update(i)


if __name__ == "__main__":
    mp.spawn(work, args=(mp.get_context("spawn").Lock(),), nprocs=2)
