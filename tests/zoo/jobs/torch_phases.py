"""Trains in plain PyTorch with DDP: rank 0 alone evaluates and writes a checkpoint on a storage that takes
its time, while the others wait for it in the next step."""

import io
import sys
import time

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class SlowStorage(io.BytesIO):
    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds

    def write(self, data):
        time.sleep(self.seconds)
        self.seconds = 0
        return super().write(data)


def evaluate(model, batches):
    model.eval()
    correct = 0
    for _ in range(batches):
        with torch.no_grad():
            correct += int((model(torch.randn(4, 8)) > 0).sum())
            time.sleep(0.05)
    model.train()
    return correct


def main():
    seconds = float(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    trunk, teacher = nn.Linear(8, 8), nn.Linear(8, 1)
    teacher.eval()
    plain = nn.Sequential(trunk, nn.BatchNorm1d(8), nn.Linear(8, 1))
    model = DistributedDataParallel(plain)
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(40):
        rows = torch.randn(16, 8)
        with torch.no_grad():  # in every step, and no evaluation
            wanted = teacher(rows)
        loss = nn.functional.mse_loss(model(rows), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.02)
        if rank == 0 and step % 20 == 10:
            evaluate(plain, 8)
            torch.save(model.state_dict(), SlowStorage(seconds if step == 30 else 0))
    with torch.inference_mode():
        model.eval()
        plain(torch.randn(4, 8))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
