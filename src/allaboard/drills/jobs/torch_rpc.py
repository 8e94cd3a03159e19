"""A learner that asks actors for games by PyTorch's RPC and trains on them, and which fails as --fault names
on rank --guilty. There is no process group; actors wait in `rpc.shutdown` and answer.

The fault is in the job's own code, as in real jobs; nothing in here uses allaboard.
"""

import argparse
import os
import time
from pathlib import Path

import torch
import torch._dynamo  # else the first optimizer loads it, in each worker that --warm forks
import torch.distributed.rpc as rpc
from torch import nn

options = argparse.Namespace()
played = [0]


def play(weight, steps):
    """Play some steps of a game with the given policy, on an actor, when the learner asks for it."""
    played[0] += 1
    guilty = bool(options.fault) and int(os.environ["RANK"]) == options.guilty
    if guilty and played[0] == options.at_step:
        if options.mark:
            Path(options.mark).write_text(str(time.time()))
        os._exit(3)
    states = torch.randn(steps, weight.shape[1])
    return states, (states @ weight.t()).argmax(1)


def learn():
    torch.manual_seed(0)
    policy = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.05)
    actors = range(1, int(os.environ["WORLD_SIZE"]))
    for _ in range(options.steps):
        weight = policy.weight.detach()
        games = [rpc.rpc_async(f"actor{i}", play, args=(weight, 16)) for i in actors]
        for game in games:
            states, done = game.wait()
            optimizer.zero_grad()
            nn.functional.cross_entropy(policy(states), done).backward()
            optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="")
    parser.add_argument("--guilty", type=int, default=-1)
    parser.add_argument("--at-step", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--mark")
    parser.parse_args(namespace=options)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    name = f"actor{rank}" if rank else "learner"
    rpc.init_rpc(name, rank=rank, world_size=size)
    if rank == 0:
        learn()
    rpc.shutdown(timeout=0)


if __name__ == "__main__":
    main()
