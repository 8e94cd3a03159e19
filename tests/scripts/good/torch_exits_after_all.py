import sys
import torch
import torch.distributed as dist
from mylib import evaluate

dist.init_process_group("gloo")
score = torch.tensor([evaluate(dist.get_rank())])
dist.reduce(score, dst=0)
if dist.get_rank() != 0:
    dist.destroy_process_group()
    sys.exit(0)
print(score.item())
dist.destroy_process_group()
