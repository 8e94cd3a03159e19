"""What the hosts of `preflight --hosts` say, passed on, and what is left to say of those that did not."""

from __future__ import annotations

import shlex
import sys
import threading
import time
from typing import IO

from allaboard.preflight.remote_lifetime import HERE

UNREACHED = 255
"""ssh's exit code where ssh itself failed; ssh(1)."""


class Said:
    """Each line once: a finding is told on every host in the same words. ``here`` is what each host that
    was reached told of itself, ``last`` its last line, ``heard`` when any was last heard of (s,
    CLOCK_MONOTONIC)."""

    def __init__(self, first: str) -> None:
        self._first = first
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self.here: dict[str, str] = {}
        self.last: dict[str, str] = {}
        self.heard = time.monotonic()

    def pass_on(self, host: str, stream: IO[bytes]) -> None:
        """Reads to the end of the stream."""
        for line in stream:
            text = line.decode(errors="replace").rstrip()
            with self._lock:
                self.heard = time.monotonic()
                if text.startswith(HERE):
                    self.here[host] = text.removeprefix(HERE)
                    continue
                self.last[host] = text
                course = text.startswith("allaboard: ") and host != self._first
                if course or text in self._seen:
                    continue
                self._seen.add(text)
                sys.stderr.write(f"[{host}] {text}\n")
                sys.stderr.flush()


def left_to_say(ssh: str, python: str, host: str, code: int | None, said: Said) -> str:
    """Of a host that did not do its part, with what to type; "" of any other. ``code`` is that of its ssh,
    None where it had not ended."""
    login = f"{ssh} -o BatchMode=yes {shlex.quote(host)}"
    last = said.last.get(host, "nothing was said")
    if code is None:
        if host in said.here:
            what = f"{host} was reached, and its preflight neither answers nor ends"
            return told(what, f"{login} 'ps -eo pid,stat,etime,args | grep [p]reflight'")
        return told(f"the login on {host} neither fails nor comes through", f"{login} true")
    if code == UNREACHED:
        lost = "the connection was lost" if host in said.here else "no login"
        return told(f"{lost} on {host}: {last}", f"{login} true")
    if code and host not in said.here:
        what = f"allaboard did not start on {host}: {last}"
        do = f"{login} {shlex.quote(python)} -m allaboard --version"
        return told(what, f"{do}   # it is looked for where it is here")
    return ""


def told(what: str, do: str) -> str:
    return f"allaboard preflight: {what}\n  do   {do}\n"
