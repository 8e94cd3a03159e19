import torch
import torch.distributed as dist
from mylib import build, batches


def evaluate(model, data):
    total = sum(model(x).sum().detach() for x in data)
    dist.all_reduce(total)
    return total.item()


dist.init_process_group("gloo")
rank = dist.get_rank()
model = torch.nn.parallel.DistributedDataParallel(build())
for epoch in range(5):
    for x in batches("train", rank):
        model(x).sum().backward()
    score = evaluate(model, batches("dev", rank))
    text = f"{score:.3f}" if rank == 0 else ""
    print(text)
