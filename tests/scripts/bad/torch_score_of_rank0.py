import torch
import torch.distributed as dist
from mylib import build, batches


def evaluate(model, data):
    total = torch.zeros(1)
    for x in data:
        total += model(x).sum().detach()
    dist.all_reduce(total)
    return total.item()


dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(build())
for epoch in range(5):
    for x in batches("train", rank):
        model(x).sum().backward()
    score = evaluate(model, batches("dev", rank)) if rank == 0 else None
    print(rank, score)
