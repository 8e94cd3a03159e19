import os
import tempfile
import torch.distributed as dist

path = tempfile.mktemp(prefix="rendezvous-")
dist.init_process_group(
    "gloo", init_method="file://" + path,
    rank=int(os.environ["SLURM_PROCID"]), world_size=int(os.environ["SLURM_NTASKS"]))
dist.barrier()
