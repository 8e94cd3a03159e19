"""How long the stacks of very many ranks take: received, parsed, merged, the odd ones out named.

A process of its own plays all ranks: it sends one message a rank (its number and the dump that
faulthandler writes for its main thread: 24 calls of a DDP job, 2.3 kB, with a thread id that differs
in every one), through one socket. The other reads them, groups them (`stacks.groups`), merges the
prefix tree (`stacks.tree`) and names the odd ones out (`stacks.outliers`). The seconds run from the
first byte to the last name; both processes share the cores. In every case but those of one class,
three ranks are asleep in code of their own while all others wait in a collective, at as many places
as there are classes; a case counts only where exactly those three are named. The published figure is that of
STAT's emulation of 131,072 stacks: 3 s; the aim is 1 s.
"""

from __future__ import annotations

import resource
import socket
import struct
import subprocess
import sys
import time
from array import array
from pathlib import Path
from statistics import median

import sheet

HEAD = struct.Struct("<II")
CASES = [(n, c) for n in (1_000, 10_000, 131_072, 1_000_000) for c in (1, 10, 100)]
PUBLISHED, AIM, SIZE = 3.0, 1.0, 131_072
CHUNK = 1 << 20
TORCH = "/opt/venv/lib/python3.11/site-packages/torch"


def dump(place: int, asleep: bool) -> bytes:
    """The dump of one rank; its thread id is left open (``%016x``)."""
    layers = [
        f'  File "{TORCH}/nn/modules/module.py", line {1700 + n} in _call_impl' for n in range(18)
    ]
    user = f'  File "/home/u/project/train.py", line {100 + place} in train'
    frames = [f'  File "{TORCH}/distributed/distributed_c10d.py", line 2800 in all_reduce', user]
    if asleep:
        frames = ['  File "/home/u/project/data.py", line 31 in fetch', user]
    ends = [
        '  File "/home/u/project/train.py", line 402 in main',
        f'  File "{TORCH}/distributed/elastic/multiprocessing/errors/__init__.py", line 355 in wrapper',
        '  File "/home/u/project/train.py", line 420 in <module>',
    ]
    head = "Thread 0x%016x (most recent call first):"
    return "\n".join([head, *frames, *layers, *ends, "", ""]).encode()


def guilty(ranks: int, classes: int) -> set[int]:
    return {ranks // 7, ranks // 2, ranks - 1} if classes > 1 else set()


def send(peer: socket.socket, ranks: int, classes: int) -> None:
    """Plays all ranks."""
    odd = guilty(ranks, classes)
    places = [dump(n, False) for n in range(max(1, classes - 1))]
    wrong = dump(0, True)
    buffer = bytearray()
    for rank in range(ranks):
        template = wrong if rank in odd else places[rank * 7919 % len(places)]
        text = template % (0x7F0000000000 + rank * 4096)
        buffer += HEAD.pack(rank, len(text))
        buffer += text
        if len(buffer) > CHUNK:
            peer.sendall(buffer)
            buffer.clear()
    peer.sendall(buffer)


def receive(peer: socket.socket, ranks: int, classes: int) -> None:
    """Prints seconds, peak memory (MB above the start) and whether the right ones were named."""
    from allaboard.analysis.stacks.outliers import find_outliers
    from allaboard.analysis.stacks.stack_groups import StackGroups
    from allaboard.analysis.stacks.stack_tree import merge_stacks

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    groups, held, chunk, seen = StackGroups(), bytearray(), bytearray(CHUNK), 0
    began = 0.0
    while seen < ranks:
        size = peer.recv_into(chunk)
        began = began or time.perf_counter()
        held += memoryview(chunk)[:size]
        at, end = 0, len(held)
        while end - at >= HEAD.size:
            rank, length = HEAD.unpack_from(held, at)
            if end - at < HEAD.size + length:
                break
            at += HEAD.size + length
            groups.add_dump(rank, held[at - length : at].decode())
            seen += 1
        del held[:at]
    read = time.perf_counter() - began
    known = list(groups)
    merge_stacks(known)
    named = array("I")
    for group in find_outliers(known).outliers:
        named.extend(group.ranks)
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    right = set(named) == guilty(ranks, classes) and len(known) == classes
    print(seconds, read, (peak - before) / 1024, int(right))


def measure(ranks: int, classes: int) -> list[float]:
    ours, theirs = socket.socketpair()
    command = [
        sys.executable,
        __file__,
        "--receive",
        str(theirs.fileno()),
        str(ranks),
        str(classes),
    ]
    process = subprocess.Popen(
        command, pass_fds=(theirs.fileno(),), stdout=subprocess.PIPE, text=True
    )
    theirs.close()
    send(ours, ranks, classes)
    output, _ = process.communicate()
    ours.close()
    if process.returncode:
        sys.exit(f"the receiver ended with {process.returncode}")
    return [float(word) for word in output.split()]


def main() -> None:
    if sys.argv[1:2] == ["--receive"]:
        fd, ranks, classes = map(int, sys.argv[2:5])
        receive(socket.socket(fileno=fd), ranks, classes)
        return
    parser = sheet.arguments(__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each case")
    options = parser.parse_args()
    facts = sheet.circumstances(options.python)
    rows, data, met = [], [], True
    for ranks, classes in CASES:
        runs = [measure(ranks, classes) for _ in range(options.runs if ranks <= SIZE else 2)]
        seconds = [r[0] for r in runs]
        right = all(r[3] == 1 for r in runs)
        met &= right and (ranks > SIZE or median(seconds) < PUBLISHED)
        data.append({"ranks": ranks, "classes": classes, "runs": runs})
        reads = median(r[1] for r in runs)
        peak = max(r[2] for r in runs)
        slow = max(seconds)
        row = (f"{ranks:,}", classes, len(runs), median(seconds), slow, reads, f"{peak:.0f}")
        rows.append((*row, "yes" if right else "NO"))
        print(rows[-1], flush=True)
    head = ["stacks", "classes", "runs", "median (s)", "slowest (s)", "of it receive and parse (s)"]
    body = sheet.table([*head, "memory (MB)", "right ones named"], rows)
    body += f"\nAt {SIZE:,}: published {PUBLISHED:g} s, aim {AIM:g} s. Memory is the receiver's growth.\n"
    sheet.save(Path(options.results) / "stacks.json", {"circumstances": facts, "cases": data})
    sheet.page("stacks", __doc__, facts, body, options.results)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
