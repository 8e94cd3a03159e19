"""The termination message of a Kubernetes container: what ``kubectl describe pod`` shows of its end.

The kubelet reads the file after the container has ended, 4096 bytes at most (``terminationMessagePath``).
What is more is cut off, which may be within a character.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from allaboard.facts import Finding, Report
from allaboard.report.finding_text import finding_lines
from allaboard.report.plain_text import clean

DEFAULT_PATH = Path("/dev/termination-log")
"""``terminationMessagePath``, unless the pod says another one."""
MAX_NBYTES = 4096
"""What the kubelet reads of the file."""


def termination_path(environment: Mapping[str, str], default: Path = DEFAULT_PATH) -> Path | None:
    """Return the file of the message in a container of Kubernetes, or None.

    Only the kubelet makes the file, so one that is not there is not wanted.
    """
    if not environment.get("KUBERNETES_SERVICE_HOST"):
        return None
    return default if default.is_file() and os.access(default, os.W_OK) else None


def termination_message(report: Report, finding: Finding | None) -> str:
    """Return how the run ended, what to do with it, and the finding that says why."""
    end = f"allaboard: {report.outcome}, exit code {report.exit_code}"
    lines = [f"{end}: {clean(report.reason)}" if report.reason else end]
    if report.retry is not None:
        lines.append(f"try again: {report.retry.verdict} ({clean(report.retry.reason)})")
    if finding is not None:
        lines += finding_lines(finding)
    return cut_to_bytes("\n".join(lines) + "\n", MAX_NBYTES)


def cut_to_bytes(text: str, limit: int) -> str:
    """Return as many whole characters of the text as have no more than ``limit`` bytes in UTF-8."""
    encoded = text.encode(errors="replace")
    if len(encoded) <= limit:
        return encoded.decode()
    mark = "…\n"
    return encoded[: limit - len(mark.encode())].decode(errors="ignore") + mark


def write_termination_message(path: Path, text: str) -> str:
    """Write the message; return the error as a sentence, "" if there was none.

    The file is written in place: it is a mount of its own, which no other file can replace.
    """
    try:
        # Not created unless the user named it: then its folder is the user's.
        with path.open("wb") as file:
            file.write(text.encode())
    except OSError as error:
        return f"the termination message cannot be written: {error.strerror}: {path}"
    return ""
