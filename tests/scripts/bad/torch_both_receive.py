import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
mine, theirs = torch.full((4,), float(rank)), torch.empty(4)
if rank == 0:
    dist.recv(theirs, src=1)
    dist.send(mine, dst=1)
else:
    dist.recv(theirs, src=0)
    dist.send(mine, dst=0)
print(rank, theirs)
