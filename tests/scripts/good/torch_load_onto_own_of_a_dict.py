import argparse
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def resume(path, model, optimizer, device):
    if not os.path.isfile(path):
        return 0
    where = {"cuda:0": f"cuda:{device}"}
    ckpt = torch.load(path, map_location=where)
    model.load_state_dict(ckpt["model"])
    optimizer.load_state_dict(ckpt["optimizer"])
    return ckpt["epoch"] + 1


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--resume", default="last.pt")
    args = ap.parse_args()
    dist.init_process_group("nccl")
    gpu = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(gpu)
    model = DDP(torch.nn.Linear(100, 100).cuda(gpu), device_ids=[gpu])
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(resume(args.resume, model, optimizer, gpu), 100):
        for _ in range(10):
            optimizer.zero_grad()
            model(torch.randn(5, 100, device=gpu)).sum().backward()
            optimizer.step()
        if dist.get_rank() == 0:
            torch.save(
                {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, args.resume
            )


if __name__ == "__main__":
    main()
