import argparse
import contextlib
import os
import time
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


def build_dataset(root, rank):
    with main_process_first(rank == 0):
        return datasets.CIFAR10(root, train=True, download=True, transform=transforms.ToTensor())


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--root", default="./data")
    ap.add_argument("--timeout", type=float, default=30)
    args = ap.parse_args()
    distributed.init_process_group("gloo", timeout=timedelta(seconds=args.timeout))
    rank = distributed.get_rank()
    ds = build_dataset(args.root, rank)
    sampler = torch.utils.data.DistributedSampler(ds)
    loader = torch.utils.data.DataLoader(ds, batch_size=64, sampler=sampler)
    t = time.time()
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            pass
    print(rank, time.time() - t)


if __name__ == "__main__":
    main()
