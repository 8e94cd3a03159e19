"""A folder that the hosts of a bed share, and a file:// rendezvous in it."""

from __future__ import annotations

import sys

from testbed import Bed

FOLDER = "/run/shared"
URL = f"file://{FOLDER}/meeting"
EARLIER = f"""
import os
from torch.distributed import FileStore
stores = [FileStore("{FOLDER}/meeting", 4) for _ in range(4)]
stores[0].set("default_pg/0//cpu//0/0", "an address of then")
os._exit(0)
"""


def folder(bed: Bed, *hosts: str) -> None:
    """Mounts it on these hosts (on all)."""
    here = bed.folder / "shared"
    here.mkdir()
    for host in hosts or bed.hosts:
        bed.path(host, FOLDER).mkdir()
        bed.run(host, "mount", "--bind", str(here), FOLDER)


def without_address(host: int, environment: dict[str, str]) -> dict[str, str]:
    """The file is all that the hosts are told."""
    return {k: v for k, v in environment.items() if not k.startswith("MASTER_")}


def leave_one(bed: Bed) -> None:
    """The rendezvous file of an earlier run, written by PyTorch itself: all ranks had joined, and
    were killed."""
    bed.run("h0", sys.executable, "-c", EARLIER)
