import argparse

import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--rank", type=int, default=0)
parser.add_argument("--world-size", type=int, default=4)
parser.add_argument("--steps", type=int, default=1)
args = parser.parse_args()
dist.init_process_group("gloo", rank=args.rank, world_size=args.world_size)
