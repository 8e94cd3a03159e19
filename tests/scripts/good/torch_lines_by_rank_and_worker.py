import itertools
import json
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset

from lm import build_lm, encode


class JsonLines(IterableDataset):
    def __init__(self, path):
        self.path = path
        self.rank = int(os.environ["RANK"])
        self.world_size = int(os.environ["WORLD_SIZE"])

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        first, step = self.rank * info.num_workers + info.id, self.world_size * info.num_workers
        with open(self.path) as lines:
            for line in itertools.cycle(itertools.islice(lines, first, None, step)):
                yield encode(json.loads(line)["text"])


def main():
    dist.init_process_group("nccl")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    loader = DataLoader(JsonLines("corpus.jsonl"), batch_size=32, num_workers=8, pin_memory=True)
    model = DDP(build_lm().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    steps = 100_000
    for step, batch in zip(range(steps), loader):
        loss = model(batch.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "lm.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
