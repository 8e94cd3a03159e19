import os
import torch.distributed as dist
from mylib import fit

where = os.path.join("/tmp", "ddp", "sync")
dist.init_process_group("gloo", init_method="file://" + where,
                        rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"]))
fit(int(os.environ["SLURM_NODEID"]))
