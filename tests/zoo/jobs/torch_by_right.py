"""A healthy job of 4 ranks in which ranks differ by right. It must train without a finding."""

import os
import threading
import time

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed as dist
from torch import nn
from torch.distributed import _functional_collectives as calls
from torch.distributed.algorithms.join import Join
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

STEPS = int(os.environ.get("STEPS", "150"))


def exchanges(rank, size, pair, step):
    """Operations whose arguments may differ between ranks."""
    own = torch.full((3,), float(rank))
    if rank == 0:
        dist.gather(own, [torch.empty(3) for _ in range(size)], dst=0)
        dist.scatter(own, [torch.full((3,), float(r)) for r in range(size)], src=0)
        dist.broadcast(own, src=0)
    else:
        dist.gather(own, dst=0)
        dist.scatter(own, src=0)
        dist.broadcast(own, 0)
    give = [rank + 1 if r == (rank + 1) % size else 1 for r in range(size)]
    take = [r + 1 if rank == (r + 1) % size else 1 for r in range(size)]
    dist.all_to_all_single(torch.empty(sum(take)), torch.ones(sum(give)), take, give)
    found = [None] * size
    dist.all_gather_object(found, "x" * (rank * 50))
    if rank == 0:
        dist.all_reduce(torch.ones(5))
    else:
        dist.all_reduce(torch.zeros(5))
    for turn in range(size):  # each has something to give once
        if rank == turn:
            dist.all_reduce(own)
        else:
            dist.all_reduce(torch.zeros(3))
    names = [f"run {step}" if rank == 0 else None]
    dist.broadcast_object_list(names, src=0)
    work = dist.all_reduce(torch.ones(rank + 1).sum().reshape(1), async_op=True)
    dist.all_reduce(torch.ones(2, 2) if rank % 2 else torch.ones(4))
    work.wait()
    if rank % 2 == 0:
        dist.send(own, rank + 1)
    else:
        dist.recv(own, rank - 1)
    for _ in range(1 + rank // 2):  # each pair at its own pace, with its own shapes
        dist.all_reduce(torch.ones(1 + rank // 2), group=pair)
    if step % 10 == 0:
        dist.barrier()


def functional(rank, size, mesh):
    """The same by the functions that DTensor calls."""
    give = [rank + 1 if r == (rank + 1) % size else 1 for r in range(size)]
    take = [r + 1 if rank == (r + 1) % size else 1 for r in range(size)]
    moved = calls.all_to_all_single(torch.ones(sum(give)), take, give, mesh)
    if rank == 0:
        total = calls.all_reduce(torch.ones(4), "sum", (mesh, 0))
    else:
        total = calls.all_reduce(torch.zeros(2, 2), "SUM", dist.group.WORLD)
    if rank % 2:  # which is the same operation between ranks
        dist.all_reduce(torch.ones(3))
    else:
        total = total.sum() + calls.all_reduce(torch.ones(3), "sum", mesh).sum()
    assert float(total.sum()) >= 4 and len(moved) == sum(take)


def beside(group, stop):
    while True:  # who left because of its own ``stop`` would leave the others waiting
        enough = torch.tensor([1.0 if stop.is_set() else 0.0])
        dist.all_reduce(enough, group=group)
        if enough.item():
            return
        time.sleep(0.02)


def ddp(rank):
    """Gradients are gathered over several batches, rank 0 evaluates alone, one rank has less data."""
    net = nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16), nn.Linear(16, 2))
    model = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(STEPS):
        optimizer.zero_grad()
        with model.no_sync():
            model(torch.randn(8, 16)).sum().backward()
        if rank == 0 and step % 7 == 0:
            with torch.no_grad():
                model.module(torch.randn(8, 16))
            probe = nn.Linear(2, 1)
            probe(torch.randn(4, 2)).sum().backward()
        model(torch.randn(8 + rank, 16)).sum().backward()
        optimizer.step()
    with Join([model]):
        for _ in range(10 + 5 * rank):
            model(torch.randn(8, 16)).sum().backward()
            optimizer.step()


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    lonely = dist.new_group(list(range(size)))
    stop = threading.Event()
    thread = threading.Thread(target=beside, args=(lonely, stop))
    thread.start()
    mesh = init_device_mesh("cpu", (size,))
    for step in range(STEPS):
        functional(rank, size, mesh)
        exchanges(rank, size, pairs[rank // 2], step)
    stop.set()
    thread.join()
    try:
        dist.all_reduce("not a tensor")
    except TypeError:
        pass
    ddp(rank)
    dist.barrier()
    if rank == 0:
        print("accuracy of nothing: all went well", flush=True)
    time.sleep(0.3)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
