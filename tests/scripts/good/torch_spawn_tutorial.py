import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler
from torch.utils.data import DataLoader

def ddp_setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    torch.cuda.set_device(rank)
    dist.init_process_group(backend="nccl", rank=rank, world_size=world_size)

def main(rank, world_size, epochs):
    ddp_setup(rank, world_size)
    ds = torch.utils.data.TensorDataset(torch.zeros(10, 1))
    loader = DataLoader(ds, batch_size=2, shuffle=False, sampler=DistributedSampler(ds))
    model = DDP(torch.nn.Linear(1, 1).to(rank), device_ids=[rank])
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)
        for (x,) in loader:
            model(x.to(rank)).sum().backward()
        if rank == 0 and epoch % 2 == 0:
            torch.save(model.module.state_dict(), "checkpoint.pt")
    dist.destroy_process_group()

if __name__ == "__main__":
    world_size = torch.cuda.device_count()
    mp.spawn(main, args=(world_size, 3), nprocs=world_size)
