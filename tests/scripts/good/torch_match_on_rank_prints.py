import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def mean(value):
    dist.all_reduce(value)
    return value / dist.get_world_size()


def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    device = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(device)
    net = DDP(torch.nn.Linear(4, 4).to(device), device_ids=[device])
    opt = torch.optim.SGD(net.parameters(), 0.1)
    for step in range(50):
        opt.zero_grad()
        loss = net(torch.randn(4, 4, device=device)).sum()
        loss.backward()
        opt.step()
        value = mean(loss.detach())
        match rank:
            case 0:
                print("loss", value.item())
            case _:
                pass
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
