import torch.distributed as dist
from torchvision import datasets

dist.init_process_group("gloo")
if dist.get_rank() == 0:
    datasets.MNIST("data", download=True)
dist.barrier()
train = datasets.MNIST("data", download=False)
