import torch.distributed as dist, torch, os
from datetime import timedelta
def setup():
    rank = int(os.environ.get("RANK", os.environ.get("SLURM_PROCID", 0)))
    world = int(os.environ.get("WORLD_SIZE", os.environ.get("SLURM_NTASKS", 1)))
    if world == 1:
        return rank, world
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", rank % torch.cuda.device_count())))
    dist.init_process_group(backend, rank=rank, world_size=world, timeout=timedelta(minutes=10))
    return rank, world
def reduce_mean(t):
    if not dist.is_initialized():
        return t
    rt = t.clone()
    dist.all_reduce(rt)
    return rt / dist.get_world_size()
def main():
    rank, world = setup()
    for step in range(10):
        loss = torch.ones(1)
        mean = reduce_mean(loss)
        if rank == 0:
            print(mean)
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
main()
