"""torch_spawn.py with a mistake: the last process passes the rank of the one before it.

With three processes, rank 1 arrives twice and rank 2 never, so the group cannot form::

    timeout 40 python examples/broken/torch_spawn_wrong_rank.py
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch_spawn


def worker_with_wrong_rank(rank: int, world_size: int, port: int, args: argparse.Namespace) -> None:
    if rank == world_size - 1:
        rank -= 1  # the mistake
    torch_spawn.worker(rank, world_size, port, args)


if __name__ == "__main__":
    sys.exit(torch_spawn.launch(worker_with_wrong_rank, torch_spawn.parse_args()))
