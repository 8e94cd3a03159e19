import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
total = torch.ones(1)
dist.reduce(total, dst=0)
if rank == 0:
    print("sum", total)
gathered = [torch.zeros(1) for _ in range(dist.get_world_size())] if rank == 0 else None
dist.gather(total, gathered, dst=0)
