import os
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank):
    os.environ.update(RANK=f"{rank}", WORLD_SIZE="4", MASTER_ADDR="localhost", MASTER_PORT="29512")
    dist.init_process_group("gloo")
    dist.barrier()


if __name__ == "__main__":
    mp.spawn(run, nprocs=4)
