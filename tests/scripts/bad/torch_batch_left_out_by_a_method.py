import logging
import os

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
        except RuntimeError as err:
            if "out of memory" in str(err):
                log.warning("OOM, batch left out")
                torch.cuda.empty_cache()
                return None
            raise

    def train(self):
        for batch in self.loader:
            value = self.safe_step(batch)
            if value is not None and dist.get_rank() == 0:
                log.info("loss %.3f", value)


def main():
    dist.init_process_group("nccl")
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    ds = torch.utils.data.TensorDataset(torch.randn(1000, 10))
    sampler = torch.utils.data.DistributedSampler(ds, shuffle=False)
    loader = torch.utils.data.DataLoader(ds, 8, sampler=sampler, collate_fn=lambda b: torch.stack([t[0] for t in b]))
    Engine(torch.nn.Linear(10, 1), loader, local).train()


if __name__ == "__main__":
    main()
