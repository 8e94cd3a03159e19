import sys
import torch.distributed as dist
if sys.argv[1] == "server":
    dist.init_process_group("gloo", init_method="tcp://10.0.0.1:23456", rank=0, world_size=2)
else:
    dist.init_process_group("gloo", init_method="tcp://10.0.0.1:23456", rank=1, world_size=2)
