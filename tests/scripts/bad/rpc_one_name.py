import os

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp


def add(a, b):
    return a + b


def run(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29511"
    rpc.init_rpc("worker", rank=rank, world_size=world_size)
    if rank == 0:
        futures = [
            rpc.rpc_async("worker", add, args=(torch.ones(2), i)) for i in range(1, world_size)
        ]
        print([f.wait() for f in futures])
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run, args=(3,), nprocs=3, join=True)
