import os

import torch
import torch.distributed as dist

rank = int(os.environ["RANK"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
if rank in [0, 1]:
    teachers = dist.new_group(ranks=[0, 1])
    x = torch.ones(1).cuda()
    dist.all_reduce(x, group=teachers)
else:
    students = dist.new_group(ranks=[2, 3])
    x = torch.ones(1).cuda()
    dist.all_reduce(x, group=students)
