import glob
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, IterableDataset
from model import TinyLM
from tokens import read_tokens


class Shards(IterableDataset):
    def __init__(self, pattern, rank, world):
        self.files = sorted(glob.glob(pattern))[rank::world]

    def __iter__(self):
        for f in self.files:
            yield from read_tokens(f)


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    data = Shards("/data/c4/*.bin", rank, dist.get_world_size())
    loader = DataLoader(data, batch_size=32, num_workers=0)
    model = DDP(TinyLM().cuda(), device_ids=[local])
    opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for epoch in range(2):
        for ids in loader:
            ids = ids.cuda()
            loss = model(ids[:, :-1], ids[:, 1:])
            opt.zero_grad()
            loss.backward()
            opt.step()
        if rank == 0:
            torch.save(model.module.state_dict(), f"lm-{epoch}.pt")
        dist.barrier()


if __name__ == "__main__":
    main()
