import multiprocessing as mp
from contextlib import contextmanager

import torch
import torch.distributed as dist


@contextmanager
def exclusive(lock, name):
    lock.acquire()
    print("enter", name)
    yield
    lock.release()


class Node:
    def __init__(self, rank, size, lock):
        self.rank, self.size, self.lock = rank, size, lock
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29777", rank=rank, world_size=size)
        self.weight = torch.zeros(8) + rank

    def average(self):
        with exclusive(self.lock, f"rank {self.rank}"):
            dist.all_reduce(self.weight)
            self.weight /= self.size

    def loop(self, steps):
        for _ in range(steps):
            self.weight += torch.randn(8)
            self.average()


def main(rank, size, lock):
    Node(rank, size, lock).loop(50)


if __name__ == "__main__":
    lock = mp.Lock()
    ps = [mp.Process(target=main, args=(r, 3, lock)) for r in range(3)]
    [p.start() for p in ps]
    [p.join() for p in ps]
