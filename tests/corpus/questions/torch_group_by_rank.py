import os

import torch.distributed as dist

dist.init_process_group(backend="gloo")
rank = int(os.environ["RANK"])
if rank == 0 or rank == 3:
    members = [0, 3]
else:
    members = [1, 2]
group = dist.new_group(ranks=members)
dist.barrier(group=group)
print(rank, "done")
