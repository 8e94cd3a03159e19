"""What the script's text and the environment alone let expect, told while the job trains.

Read in a thread of its own, and only when the workers are well under way: a note never delays the
start, and a fault in here never reaches the job.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from allaboard.check.runtime_notes import environment_errors, script_notes
from allaboard.facts import Certainty, Finding, Severity

READ_AFTER_S, READ_WHILE_STARTING_AFTER_S = 1.0, 10.0
"""Seconds after the launch before anything is read: the first line of the script goes first; and the start of
all workers, unless it takes so long that a note may help."""
MAX_SCRIPT_BYTES = 512 * 1024
"""Bytes of a script that is still read beside a running job."""
MAX_SHOWN_NOTES = 5
"""Notes that are told; the rest is in `allaboard check`."""


@dataclass(frozen=True, kw_only=True)
class CheckSubject:
    """What there is to read: the script, "" where the command names none, and the environment that
    describes the cluster which the job joins, empty where allaboard describes it itself."""

    script: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)


class BackgroundCheck:
    """Read once; `take` gives what was found, once; ``trouble`` says what was not read."""

    def __init__(self, subject: CheckSubject, launched: float) -> None:
        self._subject = subject
        self._launched = launched
        self._findings: list[Finding] = []
        self._thread: threading.Thread | None = None
        self._is_taken = False
        self.read_error = ""

    def take_findings(self, now: float, starting: bool = False) -> list[Finding]:
        """The notes as soon as they are read, with nothing before and after; later while the job is
        ``starting``."""
        if self._is_taken or now < self._launched + (
            READ_WHILE_STARTING_AFTER_S if starting else READ_AFTER_S
        ):
            return []
        if self._thread is None:
            self._start_reading()
        return [] if self._thread is None or self._thread.is_alive() else self._take_all()

    def wait_for_findings(self, timeout_s: float) -> list[Finding]:
        """The notes at the end of the job, waited for no longer than ``patience`` s."""
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
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        try:
            if self._subject.variables:
                self._findings += environment_errors(self._subject.variables)
            script = self._subject.script
            if script and Path(script).stat().st_size <= MAX_SCRIPT_BYTES:
                self._findings += [soften_finding(f) for f in script_notes(script)]
        except Exception as error:
            self.read_error = f"not all of the script and the environment was read: {error!r}"


def soften_finding(finding: Finding) -> Finding:
    """As a note: a warning at most, and no more than likely, since nothing was run."""
    return msgspec.structs.replace(
        finding,
        severity=Severity.WARNING if finding.severity is Severity.ERROR else finding.severity,
        certainty=Certainty.LIKELY if finding.certainty is Certainty.CERTAIN else finding.certainty,
    )
