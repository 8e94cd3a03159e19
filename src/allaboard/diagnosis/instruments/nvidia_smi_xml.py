"""`nvidia-smi -q -x`: the GPUs of a host, what is wrong with them, and which processes use them.

Written from the DTDs that nvidia-smi names (nvsmi_device_v9 to v13), and tried on the output of a virtual
machine with one H200 (driver 580, v13) on which everything was in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
from allaboard.formats.dumps.plain_xml import XmlElement, read_xml

_ROOT, _ROOT_END = b"<nvidia_smi_log", b"</nvidia_smi_log>"
_REPLACE = "take the GPU out of use and report it to the vendor: dcgmi diag -r 3"
_YES = ("yes", "active", "true")
_LOST = re.compile(r"GPU (?:is lost|requires reset)|\bERR!|Unknown Error", re.IGNORECASE)
"""What nvidia-smi writes in place of a value that the GPU does not give any more."""
_UNCORRECTABLE = re.compile(r"uncorrectable", re.IGNORECASE)
_FLAGS: tuple[tuple[tuple[str, ...], str, Weight, str], ...] = (
    (("remapped_rows", "remapped_row_failure"), "remapping a faulty row of its memory failed",
     Weight.FAILURE, _REPLACE),
    (("remapped_rows", "remapped_row_pending"), "a row of its memory waits to be remapped",
     Weight.WARNING, RESET_GPU),
    (("retired_pages", "pending_retirement"), "a page of its memory waits to be retired",
     Weight.WARNING, RESET_GPU),
    (("retired_pages", "pending_blacklist"), "a page of its memory waits to be retired",
     Weight.WARNING, RESET_GPU),
)  # fmt: skip
"""Path of a flag, what it means when it is set, how bad that is, and what to do."""
_SLOWDOWNS = {
    "hw_thermal_slowdown": "it is so hot that the hardware slows it down",
    "hw_power_brake_slowdown": "the power supply makes the hardware slow it down",
}
"""Reasons for a lower clock that are no part of ordinary work, without their prefix."""
_COOL = "on that host: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER; examine fans, air and power supply"


def read_log(exhibit: Exhibit) -> Testimony | None:
    if b"<nvidia_smi_log" not in exhibit.data[:4096]:
        return None
    if exhibit.cut:
        return Testimony(notes=(f"{exhibit.name}: too large to be read",))
    gpus: list[GpuReading] = []
    try:
        for document in _documents(exhibit.data):
            root = read_xml(document)
            host = root.value("hostname") or exhibit.host
            gpus += [_gpu(exhibit, host, n, e) for n, e in enumerate(root.find_all("gpu"))]
    except ValueError as error:
        return Testimony(notes=(f"{exhibit.name}: XML of nvidia-smi that is not read: {error}",))
    notes = () if gpus else (f"{exhibit.name}: nvidia-smi shows no GPU",)
    return Testimony(hardware=Hardware(gpus=tuple(gpus)), notes=notes)


def _documents(data: bytes) -> Iterator[bytes]:
    """Yield each document of the file; what stands around them, as a shell's prompt, is no XML."""
    begin = data.find(_ROOT)
    while begin >= 0:
        end = data.find(_ROOT_END, begin)
        following = data.find(_ROOT, end) if end >= 0 else -1
        yield data[begin : end + len(_ROOT_END)] if end >= 0 else data[begin:]
        begin = following


def _gpu(exhibit: Exhibit, host: str, position: int, gpu: XmlElement) -> GpuReading:
    return GpuReading(
        bus=normalise_bus(gpu.attributes.get("id", "") or gpu.value("pci", "pci_bus_id")),
        index=position,  # nvidia-smi counts its GPUs in the order in which it lists them
        uuid=gpu.value("uuid"),
        model=gpu.value("product_name"),
        host=host,
        processes=tuple(_processes(gpu)),
        troubles=tuple(_troubles(gpu)),
        utilization=_number(gpu.value("utilization", "gpu_util")),
        used_mib=_number(gpu.value("fb_memory_usage", "used")),
        place=exhibit.place_of_line(0),
    )


def _number(value: str) -> int:
    """Return the number before a unit; -1 if there is none."""
    number = value.partition(" ")[0]
    return int(number) if number.isdecimal() else -1


def _processes(gpu: XmlElement) -> Iterator[GpuProcess]:
    for group in gpu.find_all("processes"):
        for process in group.find_all("process_info"):
            pid = process.value("pid")
            if pid.isdecimal():
                yield GpuProcess(
                    pid=int(pid),
                    name=process.value("process_name")[:200],
                    memory_mib=_number(process.value("used_memory")),
                )


def _troubles(gpu: XmlElement) -> Iterator[Trouble]:
    lost = next((e for e in gpu.walk() if _LOST.search(e.text)), None)
    if lost is not None:
        shown = f"{lost.name}: {lost.text.strip()[:80]}"
        yield Trouble(text=f"it does not answer ({shown})", weight=Weight.FAILURE, fix=RESET_GPU)
    action = gpu.value("gpu_recovery_action") or gpu.value("gpu_reset_status", "reset_required")
    if action and action.lower() not in (
        "none",
        "no",
        "n/a",
        "requested functionality has been deprecated",
    ):
        yield Trouble(text=f"it asks for recovery: {action}", weight=Weight.FAILURE, fix=RESET_GPU)
    for path, meaning, weight, fix in _FLAGS:
        if gpu.value(*path).lower() in _YES:
            yield Trouble(text=meaning, weight=weight, fix=fix)
    for volatile in (v for ecc in gpu.find_all("ecc_errors") for v in ecc.find_all("volatile")):
        yield from _memory_errors(volatile)
    for reasons in ("clocks_event_reasons", "clocks_throttle_reasons"):
        for element in (e for group in gpu.find_all(reasons) for e in group.children):
            slowdown = element.name.partition("reason_")[2]
            if slowdown in _SLOWDOWNS and element.text.strip().lower() in _YES:
                yield Trouble(text=_SLOWDOWNS[slowdown], fix=_COOL)


def _memory_errors(volatile: XmlElement) -> Iterator[Trouble]:
    """Yield one trouble for all uncorrectable errors since the driver was loaded."""
    # Older drivers: <double_bit> with a count for each memory, of which <total> is the sum.
    groups = [volatile, *volatile.find_all("double_bit")]
    counts = [
        (e.name if _UNCORRECTABLE.search(e.name) else f"{group.name} {e.name}", int(e.text))
        for group in groups
        for e in group.children
        if (_UNCORRECTABLE.search(e.name) or group is not volatile)
        and e.name != "total"
        and e.text.strip().isdecimal()
    ]
    nonzero = [f"{name} {count}" for name, count in counts if count]
    if nonzero:
        shown = ", ".join(nonzero[:4])
        finding_text = f"uncorrectable memory errors since the driver was loaded ({shown})"
        yield Trouble(text=finding_text, weight=Weight.WARNING, fix=RESET_GPU)


READER = LogReader(read=read_log)
