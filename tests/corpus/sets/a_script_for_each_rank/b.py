import torch.distributed as dist
dist.init_process_group('nccl', init_method='tcp://localhost:23456', rank=1, world_size=2)
