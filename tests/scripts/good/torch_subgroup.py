import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
group = dist.new_group([0, 1])
t = torch.ones(1)
if rank in [0, 1]:
    dist.all_reduce(t, group=group)
