"""torch_spawn.py with a mistake: one rank waits for something before it joins the group.

Rank 1 sits in ``wait_for_download`` while the others wait for it in init_process_group::

    timeout 40 python examples/broken/torch_spawn_asleep.py
"""

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import torch_spawn


def wait_for_download() -> None:
    """Stands for anything slow that only one rank does: a download, a file lock, a prompt."""
    time.sleep(3600)


def worker_that_may_sleep(rank: int, world_size: int, port: int, args: argparse.Namespace) -> None:
    if rank == 1:
        wait_for_download()  # the mistake
    torch_spawn.worker(rank, world_size, port, args)


if __name__ == "__main__":
    sys.exit(torch_spawn.launch(worker_that_may_sleep, torch_spawn.parse_args()))
