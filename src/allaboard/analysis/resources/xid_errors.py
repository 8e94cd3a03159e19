"""What the Xid errors of NVIDIA's GPU driver mean, and what to do about each.

The numbers, their causes and the first actions are those of NVIDIA's Xid catalogue (docs.nvidia.com/deploy/
xid-errors), in our words. A number that is not in the table is reported as unknown.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

RESET = "drain the host, end everything that uses the GPU, and reset it: nvidia-smi --gpu-reset -i {bus}"
REBOOT = "drain the host and restart it; if it happens again, have the GPU and its slot examined"
RESTART = "restart the job; if the same GPU reports it again, run dcgmi diag -r 3 on that host"
DEBUG = (
    "run once with CUDA_LAUNCH_BLOCKING=1, which shows the line that launched the kernel; compute-sanitizer "
    "python SCRIPT names the kernel; if only this GPU reports it, run dcgmi diag -r 3 on its host"
)
FABRIC = (
    "on that host: nvidia-smi nvlink -e -i {bus}; nvidia-smi nvlink -s -i {bus}; look for the same "
    "error on the GPUs at the other end, and in the log of the Fabric Manager"
)
FIRMWARE = f"{RESET}; a newer driver may have the remedy"


class Origin(StrEnum):
    """Where an Xid begins."""

    PROGRAM = "program"
    """Mostly a mistake in the program or a library, seldom the GPU."""
    HARDWARE = "hardware"
    """The GPU, its memory or its slot."""
    LINK = "link"
    """NVLink or the switches between GPUs."""
    DRIVER = "driver"
    """The driver or the firmware of the GPU."""
    CONSEQUENCE = "consequence"
    """It follows from another error or from the end of a process."""
    NOTE = "note"
    """It reports something that the GPU has mended, or a setting."""


class XidError(msgspec.Struct, frozen=True):
    """One row of the catalogue."""

    meaning: str
    """What has happened to the GPU, as the end of a sentence."""
    origin: Origin
    """Where it begins."""
    fix: str
    """What to do; {bus} stands for the PCI address of the GPU."""


_PROGRAM, _HARDWARE, _LINK, _DRIVER, _CONSEQUENCE, _NOTE = Origin
_COPY_ENGINES = (39, 40, 41, 70, 71, 72, 75, 76, 77, 85, *range(126, 136))
_VIDEO_ENGINES = (60, 68, 82, 83, 84, 86, 88, 89, *range(96, 106), 139, 142)

XID_ERRORS: dict[int, XidError] = {
    8: XidError("stopped processing the work of a process", _PROGRAM, RESTART),
    11: XidError("was given an invalid stream of commands", _PROGRAM, DEBUG),
    13: XidError("met an exception in a kernel, such as an access out of bounds", _PROGRAM, DEBUG),
    25: XidError("was given an invalid stream of commands", _PROGRAM, DEBUG),
    31: XidError("met a page fault: a kernel used an address that is not mapped", _PROGRAM, DEBUG),
    32: XidError("was given a corrupt stream of commands", _PROGRAM, DEBUG),
    37: XidError("met an error of the driver's firmware", _DRIVER, RESTART),
    38: XidError("met an error of the driver's firmware", _DRIVER, RESTART),
    43: XidError(
        "stopped the work of a process after an error of that process", _CONSEQUENCE, DEBUG
    ),
    44: XidError("met a fault while it changed between processes", _DRIVER, RESTART),
    45: XidError(
        "dropped the work of a process after an earlier error or its end", _CONSEQUENCE, RESTART
    ),
    46: XidError("stopped processing", _HARDWARE, RESET),
    48: XidError("has memory with an uncorrectable error (double-bit ECC)", _HARDWARE, RESET),
    54: XidError("has no auxiliary power", _HARDWARE, "have the power cables of the GPU examined"),
    61: XidError("met a breakpoint of its internal microcontroller", _DRIVER, FIRMWARE),
    62: XidError("has a halted internal microcontroller", _HARDWARE, RESET),
    63: XidError(
        "has put a row of its memory out of use", _NOTE, "reset the GPU when the job is over"
    ),
    64: XidError("could not put a faulty row of its memory out of use", _HARDWARE, RESET),
    66: XidError("met an illegal access by the driver", _DRIVER, RESTART),
    67: XidError("met an illegal access by the driver", _DRIVER, RESTART),
    69: XidError("met an error of a kernel's class of work", _PROGRAM, DEBUG),
    74: XidError("reported an NVLink error", _LINK, FABRIC),
    78: XidError(
        "could not be started as a virtual GPU", _DRIVER, "install a matching driver of the host"
    ),
    79: XidError("has fallen off the bus", _HARDWARE, REBOOT),
    80: XidError("received corrupt data", _PROGRAM, DEBUG),
    92: XidError(
        "has many correctable memory errors", _NOTE, "dcgmi diag -r 3 when the job is over"
    ),
    93: XidError("has written its settings too often", _NOTE, "report it to the vendor"),
    94: XidError("met an uncorrectable memory error that ended one process", _HARDWARE, RESTART),
    95: XidError(
        "met an uncorrectable memory error that may have reached other processes", _HARDWARE, RESET
    ),
    109: XidError("did not change between processes in time", _HARDWARE, RESET),
    110: XidError("reported a security fault", _HARDWARE, RESET),
    119: XidError("has firmware (GSP) that did not answer the driver in time", _DRIVER, FIRMWARE),
    120: XidError("has firmware (GSP) that failed", _DRIVER, FIRMWARE),
    121: XidError("corrected errors on the link to its CPU", _NOTE, "report it if it grows"),
    123: XidError("has an internal microcontroller that did not answer", _DRIVER, FIRMWARE),
    136: XidError("could not train an NVLink", _LINK, FABRIC),
    137: XidError("met an access over NVLink that the peer refused", _CONSEQUENCE, FABRIC),
    140: XidError("has an uncorrectable memory error that was not contained", _HARDWARE, RESET),
    141: XidError("met an error of CUDA's fast path", _DRIVER, RESTART),
    143: XidError("could not be initialised", _HARDWARE, RESET),
    **dict.fromkeys(range(144, 151), XidError("reported an NVLink error", _LINK, FABRIC)),
    151: XidError("could not renew its encryption keys", _DRIVER, "restart the virtual machine"),
    154: XidError("needs an action to recover", _CONSEQUENCE, RESET),
    155: XidError("reported an NVLink error", _LINK, FABRIC),
    156: XidError("has put a part out of use", _NOTE, RESET),
    157: XidError("could not put a faulty part out of use", _HARDWARE, RESET),
    158: XidError("met a fatal timeout", _HARDWARE, RESET),
    160: XidError("has put a memory channel out of use", _NOTE, "report it to the vendor"),
    161: XidError("could not put a memory channel out of use", _HARDWARE, RESET),
    167: XidError("met a fatal timeout on PCIe", _HARDWARE, REBOOT),
    171: XidError("has memory with an uncorrectable error (DRAM)", _HARDWARE, RESET),
    172: XidError("has memory with an uncorrectable error (SRAM)", _HARDWARE, RESET),
    **dict.fromkeys(_COPY_ENGINES, XidError("met an exception while it copied", _PROGRAM, RESTART)),
    **dict.fromkeys(
        _VIDEO_ENGINES, XidError("met an exception in a video engine", _PROGRAM, RESTART)
    ),
}
"""The catalogue, by number."""

UNKNOWN_XID = XidError("reported an error", Origin.DRIVER, RESTART)
"""What is said of a number that the table lacks."""


def explain_xid(number: int) -> XidError:
    """Return what the Xid means."""
    return XID_ERRORS.get(number, UNKNOWN_XID)


_ORDER = (
    Origin.HARDWARE,
    Origin.DRIVER,
    Origin.LINK,
    Origin.PROGRAM,
    Origin.CONSEQUENCE,
    Origin.NOTE,
)


def rank_as_cause(number: int) -> int:
    """Return the place of an Xid among several of one GPU; the lowest is most likely their cause."""
    return _ORDER.index(explain_xid(number).origin)
