import os
import time
from datetime import timedelta

import torch.distributed as dist

rank = int(os.environ["RANK"])
WAIT = 600

if rank == 0:
    time.sleep(WAIT)  # until the share is mounted
dist.init_process_group("gloo", timeout=timedelta(minutes=5))
train()
