import torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://tmp/shared", rank=0, world_size=2)
