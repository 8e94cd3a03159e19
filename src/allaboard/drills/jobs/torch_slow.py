"""A DDP job whose steps take 20 ms, in which ranks are slow or use something up, as --fault names it.

The faults are in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import gc
import resource
import time
from pathlib import Path

# Thousands of modules are loaded, and looking all through for garbage takes a fifth of that.
gc.set_threshold(50_000, 20, 1_000)

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Pictures(Dataset):
    """Random images with a rule to learn; each takes ``seconds`` to read."""

    def __init__(self):
        self.seconds = 0.0
        self.images = torch.randn(4096, 64, generator=torch.Generator().manual_seed(7))

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        time.sleep(self.seconds)
        return self.images[index], int(self.images[index].sum() > 0)


def render_debug_picture():
    time.sleep(0.04)


def leak(path, tensors):
    tensors.append(Path(path).open())


def mark(path):
    """Record when the fault began, for measurements of the time until it is found."""
    if path:
        Path(path).write_text(str(time.time()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mark")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    guilty = dist.get_rank() == options.guilty
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    if options.fault == "too-many-threads":
        torch.set_num_threads(4)
    if options.fault == "open-files" and guilty:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, most))
    if options.fault == "address-space" and guilty:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 30), resource.RLIM_INFINITY))
    tensors = []
    pixels = torch.randn(1024, 1024)
    slow = options.fault == "slow-data-everywhere" or (options.fault == "slow-data" and guilty)
    data = Pictures()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    step = epoch = 0
    while step < options.steps:
        epoch += 1
        sampler.set_epoch(epoch)
        for images, labels in loader:
            step += 1
            if guilty and step == options.at_step:
                mark(options.mark)
            if slow and step == options.at_step:
                data.seconds = 0.005
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            if options.fault == "slow-code" and guilty and step >= options.at_step:
                render_debug_picture()
            if options.fault == "open-files" and guilty and step >= options.at_step:
                leak(__file__, tensors)
            if options.fault == "address-space" and guilty and step >= options.at_step:
                tensors.append(torch.ones(1 << 18))
            if options.fault == "too-many-threads":
                pixels @ pixels
            if dist.get_rank() == 0 and step % 50 == 0:
                time.sleep(0.5)  # a checkpoint: no fault
            time.sleep(0.01)
            if step >= options.steps:
                break
    dist.barrier()
    time.sleep(0.3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
