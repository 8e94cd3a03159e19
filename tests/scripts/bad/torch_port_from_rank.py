import os
import torch.distributed as dist
import torch.multiprocessing as mp

def worker(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(29500 + rank)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    dist.barrier()

if __name__ == "__main__":
    mp.spawn(worker, args=(4,), nprocs=4)
