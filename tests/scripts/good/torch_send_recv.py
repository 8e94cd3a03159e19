import torch
import torch.distributed as dist

dist.init_process_group("gloo")
t = torch.zeros(1)
if dist.get_rank() == 0:
    dist.send(t, dst=1)
else:
    dist.recv(t, src=0)
