"""GPUs in one line each: `gpustat`, and `nvidia-smi --query-gpu=… --format=csv` with any columns.

The lines are those of gpustat 0.6 to 1.1, and the columns those of nvidia-smi of the drivers 384 to 580.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony
from allaboard.facts.instruments.hardware import GpuReading, Hardware, normalise_bus

MAX_GPUS = 4096
"""GPUs that are read of one exhibit."""
_GPUSTAT_HEAD = re.compile(r"^(?P<host>[\w.-]+)\s+.*\d\d:\d\d:\d\d.*\d{3}\.\d+(?:\.\d+)?\s*$")
_GPUSTAT_ROW = re.compile(
    r"^\[(?P<index>\d{1,3})\] (?P<model>[^|\n]{3,60}?) *\| *\d+.?C, +(?P<busy>\d{1,3}) % .*?"
    r"\| *(?P<used>\d+) / *\d+ MB"
)
_QUERY_HEAD = re.compile(r"(?:^|, )utilization\.gpu \[%\]")
_NUMBER = re.compile(r"\d+")


def read_log(exhibit: Exhibit) -> Testimony | None:
    if b"utilization.gpu" not in exhibit.data and b" MB" not in exhibit.data:
        return None
    lines = exhibit.text.split("\n")
    gpus = [*_of_gpustat(exhibit, lines), *_of_query(exhibit, lines)][:MAX_GPUS]
    return Testimony(hardware=Hardware(gpus=tuple(gpus))) if gpus else None


def _of_gpustat(exhibit: Exhibit, lines: Sequence[str]) -> Iterator[GpuReading]:
    """Yield the GPUs that gpustat lists; of `gpustat -i` the last list counts."""
    host, gpus = exhibit.host, dict[tuple[str, int], GpuReading]()
    for number, line in enumerate(lines):
        if (head := _GPUSTAT_HEAD.match(line)) is not None:
            host = head["host"]
        elif (row := _GPUSTAT_ROW.match(line)) is not None:
            index = int(row["index"])
            gpus[host, index] = GpuReading(
                bus=f"GPU {index}",
                index=index,
                model=row["model"],
                host=host,
                utilization=int(row["busy"]),
                used_mib=int(row["used"]),
                place=exhibit.place_of_line(number),
            )
    yield from gpus.values()


def _of_query(exhibit: Exhibit, lines: Sequence[str]) -> Iterator[GpuReading]:
    """Yield the GPUs of a query with a head; of a query that repeats itself the last answer counts."""
    columns: list[str] = []
    gpus: dict[int, GpuReading] = {}
    for number, line in enumerate(lines):
        if _QUERY_HEAD.search(line):
            columns = [column.partition(" [")[0].strip() for column in line.split(",")]
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if not columns or len(cells) != len(columns):
            continue
        row = dict(zip(columns, cells, strict=True))
        index = _value(row, "index") if "index" in row else len(gpus)
        gpus[index] = GpuReading(
            bus=normalise_bus(row["pci.bus_id"]) if "pci.bus_id" in row else f"GPU {index}",
            index=index,
            model=row.get("name", ""),
            host=exhibit.host,
            utilization=_value(row, "utilization.gpu"),
            used_mib=_value(row, "memory.used"),
            place=exhibit.place_of_line(number),
        )
    yield from gpus.values()


def _value(row: dict[str, str], column: str) -> int:
    """Return the number in a cell; -1 if there is none."""
    match = _NUMBER.match(row.get(column, ""))
    return int(match[0]) if match is not None else -1


READER = LogReader(read=read_log)
