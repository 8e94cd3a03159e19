import multiprocessing as mp
from contextlib import contextmanager

import torch
import torch.distributed as dist


@contextmanager
def exclusive(lock):
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


def main(rank, size, lock, queue):
    dist.init_process_group("gloo", init_method="tcp://127.0.0.1:29777", rank=rank, world_size=size)
    w = torch.zeros(8) + rank
    for step in range(50):
        dist.all_reduce(w)
        w /= size
        with exclusive(lock):
            with open("log.txt", "a") as f:
                f.write(f"{rank} {step}\n")
    if rank == 0:
        queue.put(w.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    lock, queue = mp.Lock(), mp.Queue()
    ps = [mp.Process(target=main, args=(r, 3, lock, queue)) for r in range(3)]
    [p.start() for p in ps]
    print(queue.get())
    [p.join() for p in ps]
