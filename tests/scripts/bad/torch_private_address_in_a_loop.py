import argparse
import os

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser(description="toy")
parser.add_argument("--node_rank", type=int, default=0)
parser.add_argument("--nnodes", type=int, default=2)
parser.add_argument("--gpus", type=int, default=8)
args = parser.parse_args()

HEAD = {"ip": "10.141.0.7", "port": 6006}


def worker(gpu):
    rank = args.node_rank * args.gpus + gpu
    for key, value in (("MASTER_ADDR", HEAD["ip"]), ("MASTER_PORT", str(HEAD["port"]))):
        os.environ[key] = value
    torch.cuda.set_device(gpu)
    dist.init_process_group("nccl", rank=rank, world_size=args.nnodes * args.gpus)
    x = torch.ones(1, device=gpu)
    dist.all_reduce(x)
    print(rank, x.item())


if __name__ == "__main__":
    torch.multiprocessing.spawn(worker, nprocs=args.gpus)
