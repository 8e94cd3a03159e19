import os
import torch.distributed as dist
import torch.multiprocessing as mp


def worker(rank, size):
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29544")
    dist.init_process_group("gloo", rank=rank, world_size=size)
    dist.barrier()


if __name__ == "__main__":
    size = 3
    procs = [mp.Process(target=worker, args=(r, size)) for r in range(1, size)]
    for p in procs:
        p.start()
    worker(0, size)
    for p in procs:
        p.join()
