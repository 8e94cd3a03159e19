import os
import socket
from contextlib import closing

import torch.distributed as dist
import torch.multiprocessing as mp


def find_free_port():
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as s:
        s.bind(("", 0))
        return str(s.getsockname()[1])


def setup_process(rank, world_size, backend="gloo"):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = find_free_port()
    dist.init_process_group(backend, rank=rank, world_size=world_size)


def run(rank, world_size):
    setup_process(rank, world_size)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(run, args=(4,), nprocs=4)
