"""Counters of a whole host that explain a slow training: stalls, disks, network files, network.

Formats: the kernel's accounting/psi, admin-guide/iostats and networking/snmp_counter, and proc(5). The
statistics of NFS are those that mountstats(8) reads. What cannot be read is left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from allaboard.facts import Reading

PRESSURES = {"cpu": "cpu pressure", "memory": "memory pressure", "io": "io pressure"}
"""Names of the readings of /proc/pressure: seconds in which a task of the host waited for it."""
PAGE_CACHE = "page cache"
"""Name of the reading of the bytes of files that the kernel keeps in memory."""
RECEIVED, SENT = "network received", "network sent"
SEGMENTS, RETRANSMITTED = "TCP segments sent", "TCP segments retransmitted"
BUSY, LATENCY = "busy disk", "latency of"
"""Beginnings of the names: "busy disk sda" counts seconds, "latency of sda" is seconds per request since the
last look."""
MAX_STORES = 8
"""Disks and network mounts of one look that are reported, the busiest first."""
_READ_OPERATIONS = ("READ:", "GETATTR:", "LOOKUP:", "OPEN:")
"""What a loader of data asks an NFS server."""


class _Served(NamedTuple):
    """What a disk or server has done so far."""

    requests: int
    seconds: float
    """Time that these took, added up."""
    busy: float | None
    """Seconds in which there was one at least; None if that is not counted."""
    origin: str


class HostCounters:
    """Reads the counters of this host, and the latency of its disks since the last look."""

    def __init__(self, proc: Path = Path("/proc"), sys_block: Path = Path("/sys/block")) -> None:
        self._proc = proc
        self._sys_block = sys_block
        self._last_served: dict[str, _Served] = {}
        self._whole_disks: dict[str, bool] = {}

    def read_counters(self) -> Iterator[Reading]:
        """Yield the readings."""
        yield from self._pressures()
        yield from self._page_cache()
        yield from self._network()
        yield from self._stores()

    def _pressures(self) -> Iterator[Reading]:
        for name, reading in PRESSURES.items():
            file = self._proc / "pressure" / name
            total = next((f for f in _text(file).split() if f.startswith("total=")), "")
            if total[6:].isdecimal():
                yield Reading(reading, int(total[6:]) / 1e6, 0, 0, str(file))

    def _page_cache(self) -> Iterator[Reading]:
        file = self._proc / "meminfo"
        rows = (line.split() for line in _text(file).splitlines())
        kib = {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}
        if "Cached:" in kib:
            # "Cached" has shared memory in it, which is no copy of any file.
            cached = kib["Cached:"] + kib.get("Buffers:", 0) - kib.get("Shmem:", 0)
            yield Reading(PAGE_CACHE, max(0, cached) * 1024, 0, 0, str(file))

    def _network(self) -> Iterator[Reading]:
        file = self._proc / "net" / "dev"
        received = sent = 0
        for line in _text(file).splitlines()[2:]:
            name, _, numbers = line.partition(":")
            fields = numbers.split()
            if name.strip() != "lo" and len(fields) > 8:
                received, sent = received + int(fields[0]), sent + int(fields[8])
        if received or sent:
            yield Reading(RECEIVED, received, 0, 0, str(file))
            yield Reading(SENT, sent, 0, 0, str(file))
        file = self._proc / "net" / "snmp"
        rows = [line.split() for line in _text(file).splitlines() if line.startswith("Tcp:")]
        if len(rows) == 2:
            tcp = dict(zip(*rows, strict=False))
            for name, field in ((SEGMENTS, "OutSegs"), (RETRANSMITTED, "RetransSegs")):
                if tcp.get(field, "").isdecimal():
                    yield Reading(name, int(tcp[field]), 0, 0, str(file))

    def _stores(self) -> Iterator[Reading]:
        served = dict(self._disks()) | dict(_network_mounts(self._proc / "self" / "mountstats"))
        busiest = []
        for name, now in served.items():
            previous = self._last_served.get(name)
            if previous is not None:
                requests = max(0, now.requests - previous.requests)
                seconds = max(0.0, now.seconds - previous.seconds) if requests else 0.0
                busiest.append((seconds, name, seconds / max(1, requests)))
        self._last_served = served
        for _, name, latency_s in sorted(busiest, reverse=True)[:MAX_STORES]:
            now = served[name]
            yield Reading(f"{LATENCY} {name}", latency_s, 0, 0, now.origin)
            if now.busy is not None:
                yield Reading(f"{BUSY} {name}", now.busy, 0, 0, now.origin)

    def _disks(self) -> Iterator[tuple[str, _Served]]:
        file = self._proc / "diskstats"
        for line in _text(file).splitlines():
            fields = line.split()
            if len(fields) < 13 or fields[3] == fields[7] == "0" or not self._is_disk(fields[2]):
                continue
            reads, read_ms, writes, write_ms, busy_ms = (int(fields[i]) for i in (3, 6, 7, 10, 12))
            yield (
                fields[2],
                _Served(reads + writes, (read_ms + write_ms) / 1e3, busy_ms / 1e3, str(file)),
            )

    def _is_disk(self, name: str) -> bool:
        """Return True for a whole disk, False for a partition, a loop or a RAM disk. Asked once."""
        if name not in self._whole_disks:
            whole = not name.startswith(("loop", "ram", "zram")) and os.access(
                self._sys_block / name, os.F_OK
            )
            self._whole_disks[name] = whole
        return self._whole_disks[name]


def _network_mounts(file: Path) -> Iterator[tuple[str, _Served]]:
    """Yield what the servers of the NFS mounts did for reading: requests, and milliseconds until each was
    done (the eighth number of an operation)."""
    text = _text(file)
    if " with fstype nfs" not in text:
        return
    for block in ("\n" + text).split("\ndevice ")[1:]:
        head, *lines = block.splitlines()
        if " with fstype nfs" not in head or " mounted on " not in head:
            continue
        point = head.partition(" mounted on ")[2].partition(" with fstype ")[0]
        requests, milliseconds = 0, 0
        for line in lines:
            fields = line.split()
            if fields[:1] and fields[0] in _READ_OPERATIONS and len(fields) >= 9:
                requests, milliseconds = requests + int(fields[1]), milliseconds + int(fields[8])
        yield point, _Served(requests, milliseconds / 1e3, None, str(file))


def _text(file: Path) -> str:
    try:
        with open(file) as stream:  # noqa: PTH123 - as in resource_usage
            return stream.read()
    except (OSError, UnicodeDecodeError):
        return ""
