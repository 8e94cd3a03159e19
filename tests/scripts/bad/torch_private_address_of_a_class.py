import os
import torch.distributed as dist
from mylib import fit


class Config:
    master_addr = "172.16.4.9"
    master_port = "29500"


os.environ["MASTER_ADDR"] = Config.master_addr
os.environ["MASTER_PORT"] = Config.master_port
dist.init_process_group("gloo", rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"]))
fit()
