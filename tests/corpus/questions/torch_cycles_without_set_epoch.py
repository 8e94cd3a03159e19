import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from prompts import Actor, Prompts


def cycle_dataloader(loader):
    while True:
        for batch in loader:
            yield batch


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    prompts = Prompts("gsm8k")
    loader = DataLoader(prompts, batch_size=8, sampler=DistributedSampler(prompts, shuffle=True), drop_last=True)
    actor = DDP(Actor().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(actor.parameters(), lr=1e-6)
    batches = cycle_dataloader(loader)
    for step in range(2000):
        loss = actor(next(batches).cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
