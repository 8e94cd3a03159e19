import torch.distributed as dist
dist.init_process_group("nccl", init_method="tcp//10.1.1.20:23456", world_size=4, rank=0)
