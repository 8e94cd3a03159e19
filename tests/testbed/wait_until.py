"""Waiting for a service on a bed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from testbed.errors import CannotMake
from testbed.process import Process

OFTEN = 0.02


def until(
    ready: Callable[[], bool], services: Iterable[Process], what: str, seconds: float
) -> None:
    """Returns once it is ready. Raises CannotMake with the output of the services where it does not
    come about in time, or as soon as one of them has ended."""
    services = list(services)
    end = time.monotonic() + seconds
    while not ready():
        ended = [s for s in services if s.poll() is not None]
        if ended or time.monotonic() > end:
            why = "a service ended" if ended else f"not within {seconds:g} s"
            said = "\n".join(s.text()[-1500:] for s in ended or services)
            raise CannotMake(f"{what}: {why}\n{said}")
        time.sleep(OFTEN)


def listens(first: int, port: int) -> bool:
    """Whether somebody listens on the port of the host with this first process: /proc/net/tcp."""
    for table in ("tcp", "tcp6"):
        with Path(f"/proc/{first}/net/{table}").open() as lines:
            for line in lines:
                words = line.split()
                if words[3] == "0A" and int(words[1].rpartition(":")[2], 16) == port:
                    return True
    return False
