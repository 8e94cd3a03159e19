"""Which rank uses which GPU, from the lines in which NCCL makes a communicator (``NCCL_DEBUG=INFO``).

``busId`` is NCCL's number of a PCI address: domain, bus, device and function, in hexadecimal digits without
colons (src/misc/utils.cc, busIdToInt64). Written from NCCL's source and published logs, not recorded.
"""

from __future__ import annotations

import re

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony
from allaboard.facts.instruments.hardware import Hardware, RankDevice

MAX_LINES = 20_000
"""Lines that are read of one exhibit."""
MAX_LINE = 300
"""Characters of a line that are kept."""
_DEVICE = re.compile(
    r"\bcomm 0x[0-9a-f]{1,16} rank (?P<rank>\d{1,6}) n[rR]anks (?P<size>\d{1,6}) cudaDev \d{1,4} "
    r"(?:nvmlDev \d{1,4} )?busId (?P<bus>[0-9a-f]{1,12})\b"
)
_SPEAKER = re.compile(
    r"(?P<host>[A-Za-z0-9][A-Za-z0-9.-]{0,62}):(?P<pid>\d{1,10}):\d{1,10} \[\d{1,4}\]"
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    if " busId " not in text:
        return None
    by_process: dict[tuple[str, int], tuple[int, RankDevice]] = {}
    number = counted_up_to = 0
    for match, _ in zip(_DEVICE.finditer(text), range(MAX_LINES), strict=False):
        start = text.rfind("\n", max(0, match.start() - MAX_LINE), match.start()) + 1
        speaker = _SPEAKER.search(text, start, match.start())
        if speaker is None:
            continue
        number += text.count("\n", counted_up_to, match.start())
        counted_up_to = match.start()
        size, process = int(match["size"]), (speaker["host"], int(speaker["pid"]))
        # A rank of a smaller communicator is a number within a group: the largest one has all.
        if size > by_process.get(process, (0, None))[0]:
            device = RankDevice(
                rank=int(match["rank"]),
                bus=bus_address(int(match["bus"], 16)),
                host=speaker["host"],
                pid=process[1],
                line=" ".join(text[speaker.start() : match.end()].split())[:MAX_LINE],
                place=exhibit.place_of_line(number),
            )
            by_process[process] = size, device
    largest = max((size for size, _ in by_process.values()), default=0)
    devices = tuple(d for size, d in by_process.values() if size == largest)
    return Testimony(hardware=Hardware(devices=devices)) if devices else None


def bus_address(number: int) -> str:
    """Return the PCI address of NCCL's number for it, without the function: 0x3b000 is 0000:3b:00."""
    return f"{number >> 20 & 0xFFFF:04x}:{number >> 12 & 0xFF:02x}:{number >> 4 & 0xFF:02x}"


READER = LogReader(read=read_log)
