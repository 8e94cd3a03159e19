import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler
from flowers import Flowers, Net


def average(value):
    t = torch.tensor([value, 1.0])
    dist.all_reduce(t)
    return (t[0] / t[1]).item()


def main():
    dist.init_process_group(backend="nccl")
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    ds = Flowers("train")
    sampler = DistributedSampler(ds)
    loader = DataLoader(ds, batch_size=32, sampler=sampler)
    net = DDP(Net().cuda(), device_ids=[gpu])
    opt = torch.optim.Adam(net.parameters())
    for epoch in range(40):
        sampler.set_epoch(epoch)
        running = 0.0
        for x, y in loader:
            loss = torch.nn.functional.cross_entropy(net(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
            running += loss.item()
        mean = average(running / len(loader))
        if dist.get_rank() == 0:
            print(epoch, mean)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
