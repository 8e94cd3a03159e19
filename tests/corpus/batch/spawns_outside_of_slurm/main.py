import os

import torch
import torch.multiprocessing as mp

if __name__ == "__main__":
    if "SLURM_PROCID" in os.environ:
        work(int(os.environ["SLURM_LOCALID"]))
    else:
        mp.spawn(work, nprocs=torch.cuda.device_count())
