import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from lm import Corpus, Transformer


def clip_grad_norm(model, max_norm):
    norm_sq = sum(p.grad.float().pow(2).sum() for p in model.parameters() if p.grad is not None)
    dist.all_reduce(norm_sq)
    norm = norm_sq.sqrt()
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for p in model.parameters():
        if p.grad is not None:
            p.grad.mul_(scale)
    return norm


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    corpus = Corpus("train.bin")
    sampler = DistributedSampler(corpus)
    loader = DataLoader(corpus, batch_size=8, sampler=sampler, drop_last=True)
    model = DDP(Transformer().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for tokens in loader:
            loss = model(tokens.cuda())
            optimizer.zero_grad()
            loss.backward()
            clip_grad_norm(model, 1.0)
            optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
