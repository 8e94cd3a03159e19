import torch
import torch.distributed as dist

dist.init_process_group("nccl")
model = torch.nn.Linear(2, 1).cuda()
model = torch.nn.parallel.DistributedDataParallel(model)
