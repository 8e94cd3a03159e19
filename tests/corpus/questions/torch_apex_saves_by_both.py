import argparse

import torch
from apex.parallel import DistributedDataParallel as DDP

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", default=0, type=int)
args = parser.parse_args()
torch.cuda.set_device(args.local_rank)
torch.distributed.init_process_group(backend="nccl", init_method="env://")
model = DDP(torch.nn.Linear(4, 4).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(20):
    for _ in range(100):
        loss = model(torch.randn(2, 4).cuda()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save({"net": model.state_dict(), "epoch": epoch}, "checkpoint_%d.pth" % epoch)
