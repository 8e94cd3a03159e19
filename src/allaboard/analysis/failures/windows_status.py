"""Exit codes with which Windows ends a process: an NTSTATUS of an exception that nothing handled."""

from __future__ import annotations

from typing import NamedTuple

_CRASH = "set PYTHONFAULTHANDLER=1, and start it again: it shows the Python line at which native code crashed"
_LIBRARIES = (
    'a DLL is missing or does not fit: run `where nvcuda.dll` and python -c "import torch" in this '
    "environment; install the build of PyTorch for this CUDA, and the Visual C++ redistributable"
)


class WindowsStatus(NamedTuple):
    """What an exit code of a process means on Windows."""

    name: str
    """Its meaning, with the code in the form in which documents have it."""
    fix: str
    """What to do next."""


# From ntstatus.h; the names as Windows writes them to its event log.
_STATUS = {
    0xC0000005: WindowsStatus("0xC0000005: access violation", _CRASH),
    0xC0000006: WindowsStatus(
        "0xC0000006: a page could not be read", "chkdsk; wmic diskdrive get status   # on its host"
    ),
    0xC0000017: WindowsStatus(
        "0xC0000017: no memory", "raise the page file, or start fewer processes: each imports CUDA"
    ),
    0xC000001D: WindowsStatus("0xC000001D: illegal instruction", _CRASH),
    0xC00000FD: WindowsStatus("0xC00000FD: stack overflow", _CRASH),
    0xC0000135: WindowsStatus("0xC0000135: a DLL was not found", _LIBRARIES),
    0xC0000139: WindowsStatus("0xC0000139: a DLL lacks a function", _LIBRARIES),
    0xC000013A: WindowsStatus(
        "0xC000013A: ended by Ctrl-C, or its window was closed",
        "nothing is wrong in your code, if a person did it",
    ),
    0xC0000142: WindowsStatus("0xC0000142: a DLL could not be initialized", _LIBRARIES),
    0xC0000374: WindowsStatus("0xC0000374: the heap is corrupted", _CRASH),
    0xC0000409: WindowsStatus("0xC0000409: aborted, or a buffer overran its stack", _CRASH),
}
_WORD = 1 << 32


def windows_status(code: int | None) -> WindowsStatus | None:
    """Return what the exit code of a process means if it is one of Windows', as a number with or without a
    sign; else None."""
    return _STATUS.get(code % _WORD) if code is not None else None
