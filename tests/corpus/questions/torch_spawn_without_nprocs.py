import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def main():
    world_size = torch.cuda.device_count()
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    mp.spawn(worker, args=(world_size,), join=True)


def worker(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)
    print("up", rank)


if __name__ == "__main__":
    main()
