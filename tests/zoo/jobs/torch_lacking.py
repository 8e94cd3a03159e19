"""Trains in a PyTorch in which some of what is hooked is not there, as in another version."""

import sys
import time
from importlib.machinery import PathFinder

LACKS = {
    "torch.utils.data.dataloader": "_BaseDataLoaderIter",
    "torch.distributed._functional_collectives": "all_reduce",
}


class Lacking:
    """Finds these modules as ever, and takes something out of each."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in LACKS:
            return None
        spec = PathFinder.find_spec(name, path, target)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            delattr(module, LACKS[name])

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(1, Lacking)

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)  # or the loss may begin so near its end that it rises
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data = torch.ones(160, 8)
    first = last = 0.0
    for _ in range(3):
        for rows in DataLoader(data, batch_size=8, sampler=DistributedSampler(data, shuffle=False)):
            loss = model(rows).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            first, last = first or float(loss), float(loss)
            time.sleep(0.02)
    assert last < first
    print("trained", flush=True)
    time.sleep(0.3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
