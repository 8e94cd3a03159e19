import argparse

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--opt", required=True)
parser.add_argument("--local_rank", default=-1, type=int, help="local gpu index")
args = parser.parse_args()
torch.cuda.set_device(args.local_rank)
dist.init_process_group("nccl")
dist.barrier()
