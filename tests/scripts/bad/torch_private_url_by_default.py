import argparse
import torch
import torch.distributed as dist
from mylib import fit


def get_args():
    ap = argparse.ArgumentParser()
    ap.add_argument("--dist_url", default="tcp://10.0.3.11:23456", type=str)
    ap.add_argument("--rank", default=0, type=int)
    ap.add_argument("--world_size", default=2, type=int)
    return ap.parse_args()


def main(args):
    torch.cuda.set_device(args.rank % torch.cuda.device_count())
    dist.init_process_group(backend="nccl", init_method=args.dist_url,
                            world_size=args.world_size, rank=args.rank)
    fit(args.rank)


main(get_args())
