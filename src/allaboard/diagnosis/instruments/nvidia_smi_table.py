"""The table of `nvidia-smi`: the GPUs of a host, how busy each is, and which processes use them.

The rows are those of the drivers 384 to 580, with and without the columns of MIG (GI, CI).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.gpu_advice import RESET_GPU
from allaboard.facts import Exhibit, Testimony
from allaboard.facts.instruments.hardware import (
    GpuProcess,
    GpuReading,
    Hardware,
    Trouble,
    Weight,
    normalise_bus,
)

MAX_GPUS = 4096
"""GPUs that are read of one exhibit."""
_HEAD = re.compile(r"\| NVIDIA-SMI \d")
_NAME_ROW = re.compile(
    r"^\| +(?P<index>\d{1,3}) +(?P<model>\S[^|]{3,60}?) +(?:On|Off|N/A|ERR!) *\| *"
    r"(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d) +\S+ *\| *(?P<ecc>\S+) *\|"
)
_VALUE_ROW = re.compile(
    r"^\|(?P<power>[^|]+)\| *(?P<used>\d+)MiB */ *\d+MiB *\| *(?P<busy>\d{1,3}|N/A|ERR!)%? +\S+ *\|"
)
_PROCESS_ROW = re.compile(
    r"^\| +(?P<index>\d{1,3}) +(?:\S+ +\S+ +)?(?P<pid>\d{1,9}) +(?P<kind>C\+G|C|G|M\+C) +(?P<name>\S.*?) +"
    r"(?P<memory>\d+)MiB *\|"
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    if b"NVIDIA-SMI " not in exhibit.data:
        return None
    lines = exhibit.text.split("\n")
    begins = [n for n, line in enumerate(lines) if _HEAD.search(line)]
    if not begins:
        return None
    # Of `watch nvidia-smi` the last table counts.
    begin = begins[-1]
    gpus = _gpus(exhibit, lines, begin, _processes(lines[begin:]))
    return Testimony(hardware=Hardware(gpus=tuple(gpus[:MAX_GPUS]))) if gpus else None


def _processes(lines: Sequence[str]) -> dict[int, list[GpuProcess]]:
    by_gpu: dict[int, list[GpuProcess]] = {}
    for match in filter(None, map(_PROCESS_ROW.match, lines)):
        if "C" in match["kind"]:
            process = GpuProcess(
                pid=int(match["pid"]), name=match["name"], memory_mib=int(match["memory"])
            )
            by_gpu.setdefault(int(match["index"]), []).append(process)
    return by_gpu


def _gpus(
    exhibit: Exhibit, lines: Sequence[str], begin: int, processes: dict[int, list[GpuProcess]]
) -> list[GpuReading]:
    gpus: list[GpuReading] = []
    for number in range(begin, len(lines) - 1):
        name = _NAME_ROW.match(lines[number])
        if name is None:
            continue
        value = _VALUE_ROW.match(lines[number + 1])
        index = int(name["index"])
        gpus.append(
            GpuReading(
                bus=normalise_bus(name["bus"]),
                index=index,
                model="" if "ERR!" in name["model"] else name["model"],
                host=exhibit.host,
                processes=tuple(processes.get(index, ())),
                troubles=_troubles(name["ecc"], f"{lines[number]}{lines[number + 1]}"),
                utilization=int(value["busy"])
                if value is not None and value["busy"].isdecimal()
                else -1,
                used_mib=int(value["used"]) if value is not None else -1,
                place=exhibit.place_of_line(number),
            )
        )
    return gpus


def _troubles(ecc: str, row: str) -> tuple[Trouble, ...]:
    if "ERR!" in row:
        return (
            Trouble(
                text="it does not answer (ERR! in its row)", weight=Weight.FAILURE, fix=RESET_GPU
            ),
        )
    if ecc.isdecimal() and int(ecc):
        text = f"uncorrectable memory errors since the driver was loaded ({ecc})"
        return (Trouble(text=text, weight=Weight.WARNING, fix=RESET_GPU),)
    return ()


READER = LogReader(read=read_log)
