"""The run folder: logs, a journal of what was found when, and the report."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from allaboard import __version__
from allaboard.facts import Finding, JobView, Report, RoundReport


class Journal:
    """Appends entries to ``journal.jsonl`` at the moment that they happen, unbuffered.

    A full or missing disk must not disturb the job: the first error is kept in ``write_error``, all are
    ignored.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write_error: str = ""
        """The first error while writing; "" if there was none."""
        self._file = None
        with self._record_error():
            # Unbuffered and appending: each entry is on disk even if the agent is killed right after it.
            self._file = (folder / "journal.jsonl").open("ab", buffering=0)

    def write_start(
        self,
        utc_time: str,
        job: str,
        command: tuple[str, ...],
        size: int,
        wrapped: bool,
        names: tuple[str, ...] = (),
    ) -> None:
        """Write the first entry: what was started.

        ``size`` workers are started on this host; ``names`` are the names of their logs in a job with roles.
        """
        self._append(
            {
                "kind": "start",
                "at": utc_time,
                "allaboard": __version__,
                "job": job,
                "command": command,
                "size": size,
                "wrapped": wrapped,
                "names": names,
                "host": os.uname().nodename,
                "pid": os.getpid(),
            }
        )

    def write_view(self, utc_time: str, view: JobView) -> None:
        """Write the state and the newest stacks of all members: when a finding was made, or the job started
        or ended."""
        self._append({"kind": "view", "at": utc_time, "view": view})

    def write_pulse(self, utc_time: str, view: JobView) -> None:
        """Write the steps of the slowest and the fastest worker: a sign of life in a healthy job."""
        steps = [m.step for m in view.alive if not m.launcher]
        if steps:
            self._append({"kind": "pulse", "at": utc_time, "steps": (min(steps), max(steps))})

    def write_finding(self, finding: Finding) -> None:
        self._append({"kind": "finding", "finding": finding})

    def write_event(self, utc_time: str, text: str) -> None:
        self._append({"kind": "event", "at": utc_time, "text": text})

    def write_worker(self, worker: int, pid: int, boxes: Path) -> None:
        self._append({"kind": "worker", "worker": worker, "pid": pid, "boxes": str(boxes)})

    def write_round(self, utc_time: str, report: RoundReport) -> None:
        """Write how a round ended, and what was decided after it."""
        self._append({"kind": "round", "at": utc_time, "round": report})

    def write_report(self, report: Report, copy_path: Path | None) -> None:
        """Write ``report.json`` into the run folder and to ``copy_path``, the file that the user named, if
        any."""
        text = msgspec.json.format(_encoded(report), indent=2) + b"\n"
        for file in [self.folder / "report.json"] + ([copy_path] if copy_path is not None else []):
            with self._record_error():
                file.write_bytes(text)

    def close(self) -> None:
        """Close the journal. Entries after that, as of a signal in the last moment of a run, are dropped."""
        # Detached first: a signal handler that writes now finds no file instead of a closed one.
        file, self._file = self._file, None
        if file is not None:
            with self._record_error():
                file.close()

    def _append(self, entry: dict[str, object]) -> None:
        if self._file is not None:
            with self._record_error():
                self._file.write(_encoded(entry) + b"\n")

    @contextlib.contextmanager
    def _record_error(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.write_error = (
                self.write_error or f"{error.strerror}: {error.filename or self.folder}"
            )


def _encoded(entry: object) -> bytes:
    """Return the entry as JSON. Bytes of an argument or a path that are no UTF-8 are replaced.

    os.fsdecode turns such bytes into surrogates, which JSON cannot carry.
    """
    try:
        return msgspec.json.encode(entry)
    except UnicodeEncodeError:
        return msgspec.json.encode(_printable(msgspec.to_builtins(entry)))


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_printable(key): _printable(item) for key, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list | tuple) else value
