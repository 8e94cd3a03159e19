import os
import time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from rec import Ratings, TwoTower


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    run_dir = None
    if rank == 0:
        run_dir = f"runs/{time.strftime('%Y%m%d-%H%M%S')}"
        os.makedirs(run_dir)
    box = [run_dir]
    dist.broadcast_object_list(box, src=0)
    run_dir = box[0]
    ds = Ratings("ml-25m")
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, batch_size=4096, sampler=sampler)
    model = DDP(TwoTower(ds.users, ds.items).cuda(), device_ids=[gpu])
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(5):
        sampler.set_epoch(epoch)
        for u, i, r in loader:
            loss = (model(u.cuda(), i.cuda()) - r.cuda()).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        torch.save(opt.state_dict(), os.path.join(run_dir, f"opt_rank{rank}.pt"))
    dist.destroy_process_group()


main()
