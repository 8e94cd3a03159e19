import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler

from asr import Paraformer, SpeechDataset


class Trainer:
    def __init__(self, model, optim, accum_grad=4):
        self.model = model
        self.optim = optim
        self.accum_grad = accum_grad

    def train_epoch(self, loader, epoch):
        self.model.train()
        self.optim.zero_grad()
        for batch_idx, batch in enumerate(loader):
            my_context = nullcontext
            if self.accum_grad > 1:
                my_context = self.model.no_sync if (batch_idx + 1) % self.accum_grad != 0 else my_context
            with my_context():
                loss = self.model(batch["speech"].cuda(), batch["text"].cuda())
                loss = loss / self.accum_grad
                loss.backward()
            if (batch_idx + 1) % self.accum_grad == 0:
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
                self.optim.step()
                self.optim.zero_grad()


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dataset = SpeechDataset("train.jsonl")
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler, num_workers=4)
    model = DDP(Paraformer().cuda(), device_ids=[local_rank])
    trainer = Trainer(model, torch.optim.Adam(model.parameters(), lr=2e-4))
    for epoch in range(20):
        sampler.set_epoch(epoch)
        trainer.train_epoch(loader, epoch)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
