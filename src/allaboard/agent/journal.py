"""The run folder: logs, a journal of what was found when, and the report."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from allaboard import __version__
from allaboard.facts import Finding, JobView, Report, RoundReport
from allaboard.formats.secret_hints import may_hold_secret, redact
from allaboard.launch.private_files import (
    open_folder,
    open_to_append,
    replace_file,
    write_named_file,
)
from allaboard.report.plain_text import clean

FAILING_HOSTS_NAME = "failing_hosts.txt"
"""Name in the run folder of the list of hosts that are certainly at fault."""


class Journal:
    """Appends entries to ``journal.jsonl`` at the moment that they happen, unbuffered, without secrets.

    A full or missing disk must not disturb the job: the first error is kept in ``write_error``, all are
    ignored.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write_error: str = ""
        """The first error while writing; "" if there was none."""
        self._file: io.FileIO | None = None
        self._handle: int | None = None
        with self._record_error():
            # Kept open: whoever gives the folder's name to another one gets nothing of this run.
            self._handle = open_folder(folder, follow=True)
            # Unbuffered and appending: each entry is on disk even if the agent is killed right after it.
            self._file = io.FileIO(open_to_append("journal.jsonl", self._handle), "ab")

    def write_start(
        self,
        utc_time: str,
        job: str,
        command: tuple[str, ...],
        size: int,
        wrapped: bool,
        names: tuple[str, ...] = (),
        options: tuple[str, ...] = (),
    ) -> None:
        """Write the first entry: what was started.

        ``size`` workers are started on this host; ``names`` are the names of their logs in a job with roles;
        ``options`` are those of allaboard.
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
                "options": options,
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

    def write_report(self, report: Report, copy_path: Path | None) -> str:
        """Write ``report.json`` into the run folder and to ``copy_path``, the file that the user named, if
        any. Return why that file is not written, or ""."""
        text = msgspec.json.format(_encoded(report), indent=2) + b"\n"
        if self._handle is not None:
            with self._record_error():
                replace_file("report.json", text, self._handle)
        try:
            if copy_path is not None:
                write_named_file(copy_path, text)
        except OSError as error:
            return (error.strerror or str(error)).lower()
        return ""

    def write_failing_hosts(self, hosts: Sequence[str]) -> None:
        """Write ``failing_hosts.txt``, a host a line, for a script that submits the job again; remove that of
        an earlier run in this folder if no host is at fault."""
        if self._handle is None:
            return
        with self._record_error():
            if hosts:
                text = "".join(f"{clean(host)}\n" for host in hosts)
                replace_file(FAILING_HOSTS_NAME, text.encode(errors="replace"), self._handle)
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(FAILING_HOSTS_NAME, dir_fd=self._handle)

    def close(self) -> None:
        """Close the journal. Entries after that, as of a signal in the last moment of a run, are dropped."""
        # Detached first: a signal handler that writes now finds no file instead of a closed one.
        file, self._file = self._file, None
        handle, self._handle = self._handle, None
        if file is not None:
            with self._record_error():
                file.close()
        if handle is not None:
            os.close(handle)

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
    """Return the entry as JSON, without secrets. Bytes of a path that are no UTF-8 are replaced.

    os.fsdecode turns such bytes into surrogates, which JSON cannot carry.
    """
    try:
        data = msgspec.json.encode(entry)
    except UnicodeEncodeError:
        data = msgspec.json.encode(_printable(msgspec.to_builtins(entry)))
    return msgspec.json.encode(redact(msgspec.json.decode(data))) if may_hold_secret(data) else data


def _printable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_printable(key): _printable(item) for key, item in value.items()}
    return [_printable(item) for item in value] if isinstance(value, list | tuple) else value
