import argparse
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from mylib import build, batches


def train(gpu, args):
    rank = gpu
    dist.init_process_group("nccl", init_method="env://", world_size=args.world_size, rank=rank)
    torch.cuda.set_device(gpu)
    model = torch.nn.parallel.DistributedDataParallel(build().cuda(gpu), device_ids=[gpu])
    for x, y in batches(rank, args.world_size):
        torch.nn.functional.mse_loss(model(x.cuda(gpu)), y.cuda(gpu)).backward()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("-n", "--nodes", default=2, type=int)
    p.add_argument("-g", "--gpus", default=4, type=int)
    p.add_argument("--nr", default=0, type=int, help="rank of this node")
    args = p.parse_args()
    args.world_size = args.gpus * args.nodes
    mp.spawn(train, nprocs=args.gpus, args=(args,))


if __name__ == "__main__":
    main()
