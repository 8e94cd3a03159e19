"""Checks the text of the script and the environment while the job trains.

The check runs in a thread of its own, and only once the workers are well under way: a note never delays the
start, and an internal error in here never reaches the job.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from allaboard.check.runtime_notes import command_notes, environment_errors, script_notes
from allaboard.facts import Certainty, Finding, Severity
from allaboard.hosts.fingerprint import read_commit

READ_AFTER_S, READ_WHILE_STARTING_AFTER_S = 1.0, 10.0
"""Seconds after the launch before anything is read: once the job trains, and while it still starts. The
workers' start goes first, unless it takes so long that a note may help."""
MAX_SCRIPT_BYTES = 512 * 1024
"""Largest script in bytes that is read beside a running job."""
MAX_SHOWN_NOTES = 5
"""Largest number of notes that are printed; `allaboard check` shows the others."""


@dataclass(frozen=True, kw_only=True)
class CheckSubject:
    """The script, the command and the environment that the background check reads."""

    script: str = ""
    """Path of the script; "" if the command names none."""
    command: tuple[str, ...] = ()
    """The launcher's command, if one starts the ranks."""
    are_servers_started: bool = False
    """True if allaboard runs the servers of a job with parameter servers, here or on the other hosts."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment that describes the cluster that the job joins; empty if allaboard itself describes the
    cluster."""


class FindingSource(Protocol):
    """The part of the background check that an attempt uses."""

    def take_findings(self, now: float, starting: bool = False) -> list[Finding]:
        """Return the findings once, as soon as they are complete."""


class BackgroundCheck:
    """One check in a thread; its findings are handed out once."""

    def __init__(self, subject: CheckSubject, launched: float) -> None:
        self._subject = subject
        self._launched = launched
        self._findings: list[Finding] = []
        self._thread: threading.Thread | None = None
        self._is_taken = False
        self.commit = ""
        """The git commit of the script's folder; "" if there is none, or it was not read."""
        self.read_error = ""
        """Why something could not be read; "" if all went well."""

    def take_findings(self, now: float, starting: bool = False) -> list[Finding]:
        """Return the findings once, as soon as they are complete; an empty list before and after.

        While the job is ``starting`` the check begins later.
        """
        if self._is_taken or now < self._launched + (
            READ_WHILE_STARTING_AFTER_S if starting else READ_AFTER_S
        ):
            return []
        if self._thread is None:
            self._start_reading()
        return [] if self._thread is None or self._thread.is_alive() else self._take_all()

    def wait_for_findings(self, timeout_s: float) -> list[Finding]:
        """Return the findings at the end of the job, waiting up to ``timeout_s`` for them; empty if handed
        out before."""
        if self._is_taken:
            return []
        if self._thread is None:
            self._start_reading()
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._take_all()

    def _take_all(self) -> list[Finding]:
        self._is_taken = True
        return list(self._findings)

    def _start_reading(self) -> None:
        # A daemon thread: parsing a script must never delay the end of the run.
        thread = threading.Thread(target=self._read, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no more threads may be made here
            self.read_error = f"the script and the environment were not read: {error}"
            self._is_taken = True
            return
        self._thread = thread

    def _read(self) -> None:
        try:
            if self._subject.variables:
                self._findings += environment_errors(self._subject.variables)
            self._findings += [soften_finding(f) for f in command_notes(self._subject.command)]
            script = self._subject.script
            if script:
                self.commit = read_commit(Path(script))
            if script and Path(script).stat().st_size <= MAX_SCRIPT_BYTES:
                notes = script_notes(script, self._subject.are_servers_started)
                self._findings += [soften_finding(f) for f in notes]
        except Exception as error:
            self.read_error = f"not all of the script and the environment was read: {error!r}"


def soften_finding(finding: Finding) -> Finding:
    """Return the finding as at most a warning and at most likely, since nothing was run."""
    return msgspec.structs.replace(
        finding,
        severity=Severity.WARNING if finding.severity is Severity.ERROR else finding.severity,
        certainty=Certainty.LIKELY if finding.certainty is Certainty.CERTAIN else finding.certainty,
    )
