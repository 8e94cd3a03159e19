"""The output of the hosts of `preflight --hosts`: passed on line by line, and the messages for hosts that
failed."""

from __future__ import annotations

import re
import shlex
import sys
import threading
import time
from typing import IO

from allaboard.preflight.remote_lifetime import HOST_IDENTITY_PREFIX

SSH_FAILED_EXIT_CODE = 255
"""ssh's exit code if ssh itself failed; ssh(1)."""


_CLOCK_TIME = re.compile(r"^\d\d:\d\d:\d\d ")
_NOTE = re.compile(r"allaboard(?: \d\d:\d\d:\d\d)?: ")


class HostOutput:
    """The output of all hosts. Each line is printed once, because a finding is reported on every host in
    the same words."""

    def __init__(self, first_host: str) -> None:
        self._first_host = first_host
        self._printed_lines: set[str] = set()
        # One thread per host reads: lines must not mix, and each is printed by the first that has it.
        self._lock = threading.Lock()
        self.identities: dict[str, str] = {}
        """What each host that was reached said of itself, by the name that the user gave."""
        self.last_lines: dict[str, str] = {}
        """The last line of each host."""
        self.heard_at = time.monotonic()
        """When any host last printed a line (s, CLOCK_MONOTONIC)."""

    def pass_on(self, host: str, stream: IO[bytes]) -> None:
        """Print the lines of one host until its stream ends."""
        for line in stream:
            text = line.decode(errors="replace").rstrip()
            with self._lock:
                self.heard_at = time.monotonic()
                if text.startswith(HOST_IDENTITY_PREFIX):
                    self.identities[host] = text.removeprefix(HOST_IDENTITY_PREFIX)
                    continue
                self.last_lines[host] = text
                is_progress_line = _NOTE.match(text) is not None and host != self._first_host
                # Hosts report one finding in the same words, but not in the same second.
                timeless_text = _CLOCK_TIME.sub("", text)
                if is_progress_line or timeless_text in self._printed_lines:
                    continue
                self._printed_lines.add(timeless_text)
                sys.stderr.write(f"[{host}] {text}\n")
                sys.stderr.flush()


def failure_message(
    ssh: str, python: str, host: str, exit_code: int | None, output: HostOutput
) -> str:
    """Return what to print for a host that did not do its part, with a command to try; "" if it did.

    ``exit_code`` is that of its ssh, None if ssh has not ended.
    """
    login = f"{ssh} -o BatchMode=yes {shlex.quote(host)}"
    last_line = output.last_lines.get(host, "it printed nothing")
    if exit_code is None:
        if host in output.identities:
            problem = f"{host} was reached, but its preflight neither answers nor ends"
            return format_failure(
                problem, f"{login} 'ps -eo pid,stat,etime,args | grep [p]reflight'"
            )
        return format_failure(f"the login on {host} neither fails nor succeeds", f"{login} true")
    if exit_code == SSH_FAILED_EXIT_CODE:
        cause = "the connection was lost" if host in output.identities else "no login"
        return format_failure(f"{cause} on {host}: {last_line}", f"{login} true")
    if exit_code and host not in output.identities:
        problem = f"allaboard did not start on {host}: {last_line}"
        remedy = f"{login} {shlex.quote(python)} -m allaboard --version"
        return format_failure(
            problem, f"{remedy}   # it must be installed at the same path as here"
        )
    return ""


def format_failure(problem: str, remedy: str) -> str:
    """Return the two lines of a failure: the problem, and a command to try."""
    return f"allaboard preflight: {problem}\n  do   {remedy}\n"
