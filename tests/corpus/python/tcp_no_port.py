import torch.distributed as dist
dist.init_process_group("gloo", init_method="tcp://10.0.0.1", rank=0, world_size=4)
