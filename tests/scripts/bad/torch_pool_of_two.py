import os
import torch.distributed as dist
from multiprocessing import Pool


def run(rank, size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "29513"
    dist.init_process_group("gloo", rank=rank, world_size=size)
    return dist.get_rank()


if __name__ == "__main__":
    with Pool(2) as pool:
        print(pool.starmap(run, [(0, 3), (1, 3)]))
