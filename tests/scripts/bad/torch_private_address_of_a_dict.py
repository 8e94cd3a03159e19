import os
import torch.distributed as dist
from mylib import fit

SETTINGS = {"addr": "10.11.0.3", "port": 29500}


def connect():
    os.environ["MASTER_ADDR"] = SETTINGS["addr"]
    os.environ["MASTER_PORT"] = str(SETTINGS["port"])
    dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))


connect()
fit()
