import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def main():
    rank = int(os.environ["SLURM_PROCID"])
    gpus = torch.cuda.device_count()
    mp.spawn(work, nprocs=gpus, args=(gpus, rank, "tcp://node0:29500"))


def work(gpu, gpus, node, url):
    torch.cuda.set_device(gpu)
    size = int(os.environ["SLURM_NNODES"]) * gpus
    dist.init_process_group("nccl", init_method=url, world_size=size, rank=node * gpus + gpu)


if __name__ == "__main__":
    main()
