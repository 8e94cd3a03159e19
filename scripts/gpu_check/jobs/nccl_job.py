"""A small DDP training over NCCL, with a fault on the last rank; several ranks may share one GPU.

NCCL refuses two ranks on one GPU of one host. By a host identifier of its own for each, they meet over
sockets like ranks of two hosts.
"""

import argparse
import datetime
import os
import signal
import time

import torch
import torch.distributed as dist
from torch.nn.functional import embedding
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--fault", default="none")
parser.add_argument("--steps", type=int, default=40)
parser.add_argument(
    "--slow", action="store_true", help="the last rank draws a picture in each step"
)
parser.add_argument("--timeout", type=float, default=600)
options = parser.parse_args()
RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LAST, FAULT_STEP = SIZE - 1, 6
if options.fault != "duplicate":
    os.environ["NCCL_HOSTID"] = f"host-{RANK}"
    os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    os.environ.setdefault("NCCL_IB_DISABLE", "1")

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
torch.cuda.set_device(device)
dist.init_process_group("nccl", timeout=datetime.timedelta(seconds=options.timeout))


def sum_over_ranks(value):
    total = torch.full((1,), value, device=device)
    dist.all_reduce(total)
    return total.item()


def draw_picture():
    time.sleep(0.05)


def sleep(model):
    time.sleep(300)


def stop(model):
    os.kill(os.getpid(), signal.SIGSTOP)


def kill(model):
    os.kill(os.getpid(), signal.SIGKILL)


def other(model):
    dist.broadcast(torch.ones(1, device=device), 0)
    torch.cuda.synchronize()


def shape(model):
    dist.all_reduce(torch.ones(5_000_000, device=device))
    torch.cuda.synchronize()


def out_of_range(model):
    table = torch.randn(10, 4, device=device)
    print(embedding(torch.tensor([3, 99], device=device), table).sum().item())


def spin(model):
    torch.cuda._sleep(10**14)  # cycles: hours
    torch.cuda.synchronize()


def not_finite(model):
    with torch.no_grad():
        next(model.parameters()).fill_(float("nan"))


FAULTS = {
    "sleep": sleep, "stop": stop, "kill": kill, "other": other, "shape": shape, "assert": out_of_range,
    "spin": spin, "nan": not_finite,
}  # fmt: skip


def train():
    torch.manual_seed(1)
    model = DistributedDataParallel(torch.nn.Linear(64, 8).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(options.steps):
        if options.slow and RANK == LAST:
            draw_picture()
        loss = model(torch.randn(32, 64, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if options.fault in FAULTS and RANK == LAST and step == FAULT_STEP:
            FAULTS[options.fault](model)
        assert sum_over_ranks(1.0) == SIZE
        if step % 5 == 0:
            print(f"step {step}, loss {loss.item():.4f}", flush=True)
        if step == 2:
            print("ready", flush=True)
    print(f"trained {options.steps} steps, loss {loss.item():.4f}", flush=True)


train()
dist.destroy_process_group()
