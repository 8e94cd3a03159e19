import logging
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

log = logging.getLogger(__name__)


class Engine:
    def __init__(self, model, loader, local):
        self.model = DistributedDataParallel(model.to(local), device_ids=[local])
        self.loader, self.local = loader, local
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def step(self, batch):
        self.opt.zero_grad()
        loss = self.model(batch.to(self.local)).mean()
        loss.backward()
        self.opt.step()
        return loss.item()

    def safe_step(self, batch):
        try:
            return self.step(batch)
        except RuntimeError:
            log.exception("step failed on rank %d", dist.get_rank())
            self.abort()

    def abort(self):
        logging.shutdown()
        os._exit(13)

    def train(self):
        for batch in self.loader:
            self.safe_step(batch)


def main():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    ds = torch.utils.data.TensorDataset(torch.randn(1000, 10))
    sampler = torch.utils.data.DistributedSampler(ds, shuffle=False)
    Engine(torch.nn.Linear(10, 1), torch.utils.data.DataLoader(ds, 8, sampler=sampler), local).train()


if __name__ == "__main__":
    main()
