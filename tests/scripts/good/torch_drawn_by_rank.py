import random

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

dist.init_process_group("gloo")
r = dist.get_rank()
random.seed(r)


class Buckets(torch.utils.data.IterableDataset):
    def __iter__(self):
        for _ in range(100):
            length = random.choice([8, 16, 32])
            yield torch.randn(256 // length, length)


model = DDP(torch.nn.LazyLinear(8))
for batch in DataLoader(Buckets(), batch_size=None):
    model(batch).sum().backward()
