import argparse
import torch
import torch.distributed as dist
from mylib import fit

p = argparse.ArgumentParser()
p.add_argument("--rank", type=int, default=0)
p.add_argument("--world_size", type=int, default=1)
p.add_argument("--url", default="tcp://127.0.0.1:29501")
a = p.parse_args()
torch.cuda.set_device(a.rank)
dist.init_process_group("nccl", init_method=a.url, rank=a.rank, world_size=a.world_size)
fit(a.rank)
