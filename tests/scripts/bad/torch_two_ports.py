import os
from multiprocessing import Process
import torch.distributed as dist

def master():
    os.environ["MASTER_ADDR"] = "10.0.0.1"
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("gloo", rank=0, world_size=2)

def slave():
    os.environ["MASTER_ADDR"] = "10.0.0.1"
    os.environ["MASTER_PORT"] = "29501"
    dist.init_process_group("gloo", rank=1, world_size=2)

a = Process(target=master); b = Process(target=slave)
a.start(); b.start()
