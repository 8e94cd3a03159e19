import os, sys
import torch.distributed as dist
rank = int(sys.argv[1])
if rank == 0:
    os.environ["MASTER_ADDR"] = "localhost"
else:
    os.environ["MASTER_ADDR"] = "192.168.1.5"
os.environ["MASTER_PORT"] = "29500"
dist.init_process_group("gloo", rank=rank, world_size=2)
