"""A cable in user space, for kernels without netem: two TAP devices, with delay and loss between.

Run as ``python -m testbed.wire NET NAME DELAY LOSS``, with the switch as its network: the
device NAME is the switch's end; the host's, ``eth0``, goes to the network of the path NET. Delay in
seconds and loss as a share of packets, each way. Prints ``up`` once both devices are there.
"""

from __future__ import annotations

import fcntl
import os
import random
import select
import struct
import sys
import time
from collections import deque

from testbed import sysctl

SET_DEVICE, TAP, NO_HEADER = 0x400454CA, 0x0002, 0x1000
LARGEST = 65536


def tap(name: str) -> int:
    """A new TAP device in this network; it goes when the descriptor is closed."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, SET_DEVICE, struct.pack("16sH22x", name.encode(), TAP | NO_HEADER))
    return descriptor


def main() -> None:
    """Carries packets until it is killed."""
    network, name, delay, loss = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    mine = tap(name)
    sysctl.enter(network)
    theirs = tap("eth0")
    print("up", flush=True)
    carry({mine: theirs, theirs: mine}, delay, loss)


def carry(ends: dict[int, int], delay: float, loss: float) -> None:
    """Reads from each end and writes to the other, later; the delay is one for all, so a queue does."""
    chance = random.Random(17)
    queue: deque[tuple[float, int, bytes]] = deque()
    while True:
        wait = max(0.0, queue[0][0] - time.monotonic()) if queue else None
        for end in select.select(list(ends), [], [], wait)[0]:
            for packet in _packets(end):
                if chance.random() >= loss:
                    queue.append((time.monotonic() + delay, ends[end], packet))
        while queue and queue[0][0] <= time.monotonic():
            _, end, packet = queue.popleft()
            try:
                os.write(end, packet)
            except OSError:
                pass  # a device that is down, or full: the packet is lost, as on a cable


def _packets(end: int) -> list[bytes]:
    found: list[bytes] = []
    try:
        while len(found) < 256:
            found.append(os.read(end, LARGEST))
    except OSError:
        pass  # no more for now, or the device is down
    return found


if __name__ == "__main__":
    main()
