import os
import torch.distributed as dist
import torch.multiprocessing as mp


def setup(rank=0, world_size=2):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12399"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def train(rank, size):
    setup(rank, size)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(2,), nprocs=2)
