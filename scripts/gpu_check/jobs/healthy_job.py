"""Healthy trainings on a GPU that hooks could disturb: CUDA graphs, compilation, AMP, FSDP2, streams."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn

RANK = int(os.environ["RANK"])
parser = argparse.ArgumentParser()
parser.add_argument("--kind", required=True)
options = parser.parse_args()
os.environ["NCCL_HOSTID"] = f"host-{RANK}"
os.environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
os.environ.setdefault("NCCL_IB_DISABLE", "1")

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
torch.cuda.set_device(device)
dist.init_process_group("nccl")
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 8)).to(device)
losses = []


def graph():
    """The whole step, its all_reduce too, as a CUDA graph."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    batch = torch.randn(32, 64, device=device)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = net(batch).square().mean()
        loss.backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()
        return loss

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        loss = step()
    for _ in range(50):
        captured.replay()
        losses.append(loss.item())


def amp():
    model = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**40)  # the first steps overflow, as usual
    for _ in range(50):
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(torch.randn(32, 64, device=device)).square().mean()
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())


def fsdp():
    from torch.distributed.fsdp import fully_shard

    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.001)
    for _ in range(30):
        loss = net(torch.randn(32, 64, device=device)).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())


def compiled():
    model = torch.compile(nn.parallel.DistributedDataParallel(net))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    for _ in range(30):
        loss = model(torch.randn(32, 64, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())


def loader():
    """Workers, pinned memory, a copying stream, asynchronous collectives."""
    data = torch.utils.data.TensorDataset(torch.randn(4096, 64), torch.randn(4096, 8))
    sampler = torch.utils.data.DistributedSampler(data)
    batches = torch.utils.data.DataLoader(data, 32, sampler=sampler, num_workers=2, pin_memory=True)
    model = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(model.parameters())
    copies = torch.cuda.Stream()
    for features, labels in batches:
        with torch.cuda.stream(copies):
            features = features.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
        torch.cuda.current_stream().wait_stream(copies)
        loss = nn.functional.mse_loss(model(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        work = dist.all_reduce(mean, async_op=True)
        work.wait()
        losses.append(mean.item())


KINDS = {"graph": graph, "amp": amp, "fsdp": fsdp, "compile": compiled, "loader": loader}
KINDS[options.kind]()
print(f"trained {options.kind}, losses {losses[0]:.6f} {losses[-1]:.6f}", flush=True)
dist.destroy_process_group()
