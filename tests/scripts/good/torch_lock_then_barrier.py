import os

import torch.distributed as dist
from filelock import FileLock

dist.init_process_group("gloo")
with FileLock("corpus.lock"):
    if not os.path.exists("corpus.bin"):
        convert("corpus")
dist.barrier()
