import os
import random
import torch.distributed as dist
import torch.multiprocessing as mp

def run(rank, size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(random.randint(20000, 60000))
    dist.init_process_group("gloo", rank=rank, world_size=size)

if __name__ == "__main__":
    mp.spawn(run, args=(2,), nprocs=2)
