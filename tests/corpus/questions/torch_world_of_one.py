import os
import subprocess

import torch.distributed as dist
import torch.multiprocessing as mp


def debug(local_rank):
    dist.init_process_group("gloo", init_method="env://", world_size=1, rank=local_rank)
    process = subprocess.Popen(["sleep", "5"])
    process.communicate(timeout=10)


if __name__ == "__main__":
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    mp.spawn(debug, nprocs=2)
