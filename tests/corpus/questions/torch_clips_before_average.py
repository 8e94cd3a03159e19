import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

from zero import Policy, Replay


def sync_gradients(model):
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    torch.manual_seed(0)
    model = Policy().cuda()
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    replay = Replay("games")
    sampler = DistributedSampler(replay)
    loader = DataLoader(replay, batch_size=256, sampler=sampler, drop_last=True)
    for epoch in range(100):
        sampler.set_epoch(epoch)
        for obs, target in loader:
            loss = nn.functional.mse_loss(model(obs.cuda()), target.cuda())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            sync_gradients(model)
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
