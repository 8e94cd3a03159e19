"""Compiles functions that call what allaboard hooks, and writes how often each graph broke, how many graphs
came of it, of how many frames, and what was warned of."""

import io
import json
import sys
import warnings
from pathlib import Path

import torch
import torch._dynamo
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WHOLE = []
BROKEN = []


def whole(function):
    WHOLE.append(function)
    return function


def broken(function):
    BROKEN.append(function)
    return function


@whole
@broken
def reduced(x):
    dist.all_reduce(x)
    return x + 1


@whole
def without_gradients(x):
    with torch.no_grad():
        y = x * 2
    return y + 1


MODEL = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))


@whole
def evaluated(x):
    MODEL.eval()
    return MODEL(x)


@broken
def broadcasts(x):
    dist.broadcast(x, 0)
    return x + 1


@broken
def meets(x):
    y = x * 2
    dist.barrier()
    return y + 1


@broken
def sends(x):
    if dist.get_rank() == 0:
        dist.send(x, 1)
        dist.recv(x, 1)
    else:
        dist.recv(x, 0)
        dist.send(x, 0)
    return x + 1


@broken
def exchanges(x):
    other, y = 1 - dist.get_rank(), torch.zeros(4)
    begun = [dist.isend(x, other), dist.irecv(y, other)]
    for work in begun:
        work.wait()
    return y + 1


@broken
def exchanges_in_a_batch(x):
    other, y = 1 - dist.get_rank(), torch.zeros(4)
    for work in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]
    ):
        work.wait()
    return y + 1


@broken
def waits(x):
    dist.all_reduce(x, async_op=True).wait()
    return x + 1


@broken
def trains(x):
    MODEL(x).sum().backward()
    OPTIMIZER.step()
    OPTIMIZER.zero_grad()
    return x + 1


@broken
def loads(x):
    for (batch,) in DataLoader(TensorDataset(torch.ones(4, 4)), batch_size=2):
        x = x + batch.sum(0)
    return x


@broken
def saves(x):
    torch.save(x, io.BytesIO())
    return x + 1


OPTIMIZER = torch.optim.SGD(MODEL.parameters(), lr=0.1)


def told(function, fullgraph):
    torch._dynamo.reset()
    counters = torch._dynamo.utils.counters
    counters.clear()
    compiled = torch.compile(function, backend="eager", fullgraph=fullgraph)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for turn in range(3):
            compiled(torch.ones(4) * turn)
    return {
        "breaks": sum(counters["graph_break"].values()),
        "graphs": counters["stats"]["unique_graphs"],
        "frames": counters["frames"]["ok"],
        "warned": sorted({str(w.message) for w in warned}),
    }


def main():
    dist.init_process_group("gloo")
    found = {f"{f.__name__}, whole": told(f, True) for f in WHOLE}
    found |= {f.__name__: told(f, False) for f in BROKEN}
    if dist.get_rank() == 0:
        Path(sys.argv[1]).write_text(json.dumps(found))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
