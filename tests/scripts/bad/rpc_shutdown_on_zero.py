import os

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

from agents import Observer, play


def run_worker(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29512"
    if rank == 0:
        rpc.init_rpc("agent", rank=rank, world_size=world_size)
        observers = [rpc.remote(f"observer{i}", Observer) for i in range(1, world_size)]
        for episode in range(100):
            play(observers, episode)
        rpc.shutdown()
    else:
        rpc.init_rpc(f"observer{rank}", rank=rank, world_size=world_size)


if __name__ == "__main__":
    mp.spawn(run_worker, args=(4,), nprocs=4, join=True)
