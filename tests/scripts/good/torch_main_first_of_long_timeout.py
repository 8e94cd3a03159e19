import contextlib
from datetime import timedelta

import torch
from torch import distributed
from torchvision import datasets, transforms


@contextlib.contextmanager
def main_process_first(is_main):
    if not is_main:
        distributed.barrier()
    yield
    if is_main:
        distributed.barrier()


def main():
    distributed.init_process_group("gloo", timeout=timedelta(hours=2))
    rank = distributed.get_rank()
    with main_process_first(rank == 0):
        ds = datasets.CIFAR10("data", train=True, download=True, transform=transforms.ToTensor())
    sampler = torch.utils.data.DistributedSampler(ds)
    loader = torch.utils.data.DataLoader(ds, batch_size=64, sampler=sampler)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            pass


if __name__ == "__main__":
    main()
