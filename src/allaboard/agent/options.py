"""What the user asked of one run, checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Options:
    """Times in seconds. ``wrapped``: the command is somebody else's launcher or any program."""

    timeout: float = 60.0
    timeout_hard: float | None = None
    grace: float = 30.0
    observe: bool = False
    stop_on_hang: bool = False
    hang_after: float = 600.0
    report: Path | None = None
    wrapped: bool = False
    verbose: bool = False
