"""PyTorch DDP on handwritten digits, in a script that starts its own ranks.

No launcher: the parent finds a free port and starts the ranks with ``multiprocessing``, and
each rank passes its rank, the world size and a ``tcp://`` address to init_process_group::

    python examples/torch_spawn.py --nprocs 3
"""

import argparse
import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.distributed.nn  # DDP would import it too late: see worker()
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="DDP on digits, starting its own ranks")
    parser.add_argument("--nprocs", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch-size", type=int, default=32, help="per rank")
    parser.add_argument("--lr", type=float, default=2e-3)
    return parser.parse_args()


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def worker(rank: int, world_size: int, port: int, args: argparse.Namespace) -> None:
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(port)
    torch.set_num_threads(1)  # several ranks share this machine's cores
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size
    )
    print(f"rank {rank} of {world_size} is ready", flush=True)
    train(args)
    # torch.distributed.nn has functions that keep the default group as a default argument. Had DDP
    # been the first to import it, after init, the group would outlive this call, and a Gloo thread
    # still at work while Python shuts down would abort the process (PyTorch 2.13). The pause lets
    # those threads let go of the last collective: else they and destroy may wait for each other.
    time.sleep(0.2)
    dist.destroy_process_group()


def train(args: argparse.Namespace) -> None:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    digits = load_digits()
    split = train_test_split(digits.data / 16.0, digits.target, test_size=0.2, random_state=0)
    train_x, test_x = (torch.tensor(part, dtype=torch.float32) for part in split[:2])
    train_y, test_y = (torch.tensor(part, dtype=torch.int64) for part in split[2:])

    torch.manual_seed(0)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loss_fn = nn.CrossEntropyLoss()
    # The steps are counted from the global batch, so every rank makes the same number.
    global_batch = args.batch_size * world_size
    steps = len(train_x) // global_batch
    shuffle = torch.Generator().manual_seed(0)
    for epoch in range(1, args.epochs + 1):
        order = torch.randperm(len(train_x), generator=shuffle)  # the same on every rank
        total = torch.zeros(())
        for step in range(steps):
            batch = order[step * global_batch : (step + 1) * global_batch][rank::world_size]
            optimizer.zero_grad()
            loss = loss_fn(model(train_x[batch]), train_y[batch])
            loss.backward()
            optimizer.step()
            total += loss.detach()
        dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch:3d}  loss {total.item() / (steps * world_size):.4f}", flush=True)

    if rank == 0:
        # All replicas are equal, so one of them can score the whole (small) test set.
        with torch.no_grad():
            right = model.module(test_x).argmax(dim=1) == test_y
        print(f"test accuracy {right.double().mean().item():.3f}", flush=True)


def launch(target: Callable[..., None], args: argparse.Namespace) -> int:
    """Run ``target`` once per rank; return 0 only if every process did well."""
    context = multiprocessing.get_context("spawn")  # a forked process may inherit held locks
    port = free_port()
    processes = [
        context.Process(target=target, args=(rank, args.nprocs, port, args))
        for rank in range(args.nprocs)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    failed = [rank for rank, process in enumerate(processes) if process.exitcode != 0]
    if failed:
        print(f"failed processes: {failed}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(launch(worker, parse_args()))
