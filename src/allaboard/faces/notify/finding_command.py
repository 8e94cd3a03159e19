"""Runs the user's command for each finding, with the finding as JSON on its stdin."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
from collections import deque
from pathlib import Path

import msgspec

from allaboard.faces.sidecar.bounded_call import call_in_thread
from allaboard.faces.sidecar.problem_notes import ProblemNotes
from allaboard.facts import Finding
from allaboard.hosts import pidfd

COMMAND_TIMEOUT_S = 30.0
"""Seconds that the command may take for one finding; then it is killed with all that it started."""
KILL_GRACE_S = 10.0
"""Seconds that a killed command may take to end."""
MAX_WAITING = 100
"""Findings that wait for the command; the oldest ones are dropped beyond that."""
OUTPUT_NAME = "on-finding.log"
"""File of the run folder with what the command writes."""
PROBLEM = "on-finding"


class CommandInput(msgspec.Struct, frozen=True, kw_only=True):
    """What the command reads: one line of JSON."""

    job: str
    """The job's id."""
    run_dir: str
    """The run folder."""
    finding: Finding
    """The finding; it is resolved if it has ``over``."""


class FindingCommand:
    """The command, run for one finding after the other."""

    def __init__(
        self, command: str, run_dir: Path, notes: ProblemNotes, timeout_s: float = COMMAND_TIMEOUT_S
    ) -> None:
        self._command, self._run_dir, self._notes = command, run_dir, notes
        self._timeout_s = timeout_s
        self._waiting: deque[CommandInput] = deque(maxlen=MAX_WAITING)
        self._has_work = asyncio.Event()
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    def add(self, command_input: CommandInput) -> None:
        """Let the command be run for this finding."""
        self._waiting.append(command_input)
        self._is_idle.clear()
        self._has_work.set()

    async def run(self) -> None:
        """Run the command for what comes, until cancelled."""
        while True:
            await self._has_work.wait()
            while self._waiting:
                await self._run_once(self._waiting.popleft())
            self._has_work.clear()
            self._is_idle.set()

    async def wait_until_idle(self) -> None:
        """Return when the command has been run for all findings."""
        await self._is_idle.wait()

    async def _run_once(self, command_input: CommandInput) -> None:
        line = msgspec.json.encode(command_input) + b"\n"
        try:
            failure = await call_in_thread(
                lambda: run_command(self._command, line, self._run_dir, self._timeout_s),
                self._timeout_s + KILL_GRACE_S,
            )
        except TimeoutError:
            failure = "it cannot be killed"
        except OSError as error:
            failure = (error.strerror or str(error)).lower()
        rule = command_input.finding.rule
        if failure:
            self._notes.report(PROBLEM, f"the command of --on-finding failed for {rule}: {failure}")
        else:
            self._notes.resolve(PROBLEM, "the command of --on-finding works again")


def run_command(command: str, line: bytes, run_dir: Path, timeout_s: float) -> str:
    """Run the shell command with the line on its stdin; return why it failed, or "".

    Raises OSError if it cannot be started.
    """
    stdin = os.memfd_create("finding")  # no pipe, which a command that does not read could fill
    output = _open_output(run_dir / OUTPUT_NAME)
    try:
        os.write(stdin, line)
        os.lseek(stdin, 0, os.SEEK_SET)
        process = subprocess.Popen(
            command, shell=True, stdin=stdin, stdout=output, stderr=output, start_new_session=True
        )
    finally:
        os.close(stdin)
        os.close(output)
    has_ended = _has_ended_within(process, timeout_s)
    # Also what it started and left behind. Its first process is not reaped yet, so that nobody else can have
    # the number of its group.
    os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    if not has_ended:
        return f"it took longer than {timeout_s:g} s and was killed"
    return f"exit code {code}; what it wrote is in {OUTPUT_NAME}" if code else ""


def _has_ended_within(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Return True if the process has ended in this time. It is not reaped."""
    descriptor = pidfd.open_process(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))
    finally:
        os.close(descriptor)


def _open_output(path: Path) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags, 0o600)
    except OSError:  # a full disk must not keep the command from being run
        return os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
