import os

import torch.distributed as dist


def initialize_directory(file_name):
    dirname = os.path.dirname(file_name)
    if dirname != "" and not os.path.exists(dirname):
        if dist.get_rank() == 0:
            os.makedirs(dirname)
        dist.barrier()
