"""What the hosts of `preflight --hosts` say, passed on, and what is left to say of those that did not."""

from __future__ import annotations

import shlex
import sys
import threading
import time
from typing import IO

from allaboard.preflight.remote_lifetime import HOST_IDENTITY_PREFIX

SSH_FAILED_EXIT_CODE = 255
"""ssh's exit code where ssh itself failed; ssh(1)."""


class HostOutput:
    """Each line once: a finding is told on every host in the same words. ``here`` is what each host that
    was reached told of itself, ``last`` its last line, ``heard`` when any was last heard of (s,
    CLOCK_MONOTONIC)."""

    def __init__(self, first_host: str) -> None:
        self._first_host = first_host
        self._printed_lines: set[str] = set()
        self._lock = threading.Lock()
        self.identities: dict[str, str] = {}
        self.last_lines: dict[str, str] = {}
        self.heard_at = time.monotonic()

    def pass_on(self, host: str, stream: IO[bytes]) -> None:
        """Reads to the end of the stream."""
        for line in stream:
            text = line.decode(errors="replace").rstrip()
            with self._lock:
                self.heard_at = time.monotonic()
                if text.startswith(HOST_IDENTITY_PREFIX):
                    self.identities[host] = text.removeprefix(HOST_IDENTITY_PREFIX)
                    continue
                self.last_lines[host] = text
                is_progress_line = text.startswith("allaboard: ") and host != self._first_host
                if is_progress_line or text in self._printed_lines:
                    continue
                self._printed_lines.add(text)
                sys.stderr.write(f"[{host}] {text}\n")
                sys.stderr.flush()


def failure_message(
    ssh: str, python: str, host: str, exit_code: int | None, output: HostOutput
) -> str:
    """Of a host that did not do its part, with what to type; "" of any other. ``code`` is that of its ssh,
    None where it had not ended."""
    login = f"{ssh} -o BatchMode=yes {shlex.quote(host)}"
    last_line = output.last_lines.get(host, "nothing was said")
    if exit_code is None:
        if host in output.identities:
            problem = f"{host} was reached, and its preflight neither answers nor ends"
            return format_failure(
                problem, f"{login} 'ps -eo pid,stat,etime,args | grep [p]reflight'"
            )
        return format_failure(
            f"the login on {host} neither fails nor comes through", f"{login} true"
        )
    if exit_code == SSH_FAILED_EXIT_CODE:
        cause = "the connection was lost" if host in output.identities else "no login"
        return format_failure(f"{cause} on {host}: {last_line}", f"{login} true")
    if exit_code and host not in output.identities:
        problem = f"allaboard did not start on {host}: {last_line}"
        remedy = f"{login} {shlex.quote(python)} -m allaboard --version"
        return format_failure(problem, f"{remedy}   # it is looked for where it is here")
    return ""


def format_failure(problem: str, remedy: str) -> str:
    return f"allaboard preflight: {problem}\n  do   {remedy}\n"
