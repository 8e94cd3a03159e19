import torch
import torch.distributed as dist
from mylib import load_weights

dist.init_process_group("gloo")
weights = torch.zeros(100)
if dist.get_rank() == 0:
    weights = load_weights()
    dist.broadcast(weights, src=0)
    dist.barrier()
else:
    dist.barrier()
    dist.broadcast(weights, src=0)
