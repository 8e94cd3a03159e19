import os
import subprocess

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def init_dist_slurm(backend="nccl", port=None):
    proc_id = int(os.environ["SLURM_PROCID"])
    ntasks = int(os.environ["SLURM_NTASKS"])
    node_list = os.environ["SLURM_NODELIST"]
    torch.cuda.set_device(proc_id % torch.cuda.device_count())
    addr = subprocess.getoutput(f"scontrol show hostname {node_list} | head -n1")
    if port is not None:
        os.environ["MASTER_PORT"] = str(port)
    elif "MASTER_PORT" not in os.environ:
        os.environ["MASTER_PORT"] = 29500
    os.environ["MASTER_ADDR"] = addr
    os.environ["WORLD_SIZE"] = str(ntasks)
    os.environ["RANK"] = str(proc_id)
    dist.init_process_group(backend=backend)


if __name__ == "__main__":
    mp.set_start_method("spawn")
    init_dist_slurm()
    x = torch.ones(1).cuda()
    dist.all_reduce(x)
    print(x.item())
