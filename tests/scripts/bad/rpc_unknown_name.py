import os

import torch
import torch.distributed.rpc as rpc
import torch.multiprocessing as mp

from tables import Table


def run(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29517"
    if rank == 0:
        rpc.init_rpc("master", rank=rank, world_size=world_size)
        tables = [rpc.remote(f"worker{i}", Table) for i in range(1, world_size)]
        print([t.rpc_sync().size() for t in tables])
    elif rank == 1:
        rpc.init_rpc("ps", rank=rank, world_size=world_size)
    else:
        rpc.init_rpc(f"trainer{rank}", rank=rank, world_size=world_size)
    rpc.shutdown()


if __name__ == "__main__":
    mp.spawn(run, args=(4,), nprocs=4)
