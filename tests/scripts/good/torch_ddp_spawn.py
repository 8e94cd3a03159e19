import os
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP


def setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def demo_checkpoint(rank, world_size):
    setup(rank, world_size)
    model = nn.Linear(10, 10).to(rank)
    ddp_model = DDP(model, device_ids=[rank])
    path = "/tmp/model.checkpoint"
    if rank == 0:
        torch.save(ddp_model.state_dict(), path)
    dist.barrier()
    ddp_model.load_state_dict(torch.load(path, map_location={"cuda:0": f"cuda:{rank}"}))
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(demo_checkpoint, args=(2,), nprocs=2, join=True)
