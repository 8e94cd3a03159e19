import datetime
import torch.distributed as dist
from torchvision import datasets

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
rank = dist.get_rank()
if rank == 0:
    datasets.CIFAR10("data", download=True)
dist.barrier()
