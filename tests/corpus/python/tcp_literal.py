import sys
import torch.distributed as dist

dist.init_process_group("gloo", init_method="tcp://10.0.0.1:23456", rank=int(sys.argv[1]), world_size=4)
