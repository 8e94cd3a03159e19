"""The far end of `preflight --hosts`: says which host it is, takes the secret, and ends when ssh does.

ssh sends no signal to what it started; all that is seen there is that standard input ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from allaboard.options.usage_error import UsageError

HOST_IDENTITY_PREFIX = "allaboard preflight runs on: "
"""Begins the line that is for `--hosts` alone and not passed on."""


def print_host_identity() -> None:
    """To standard error: by which two names of one host are known to be one."""
    sys.stderr.write(f"{HOST_IDENTITY_PREFIX}{host_identity()}\n")
    sys.stderr.flush()


def host_identity() -> str:
    """The kernel's boot, the name, and the namespaces of network and processes: two containers of one
    machine are two hosts. "" where this is no Linux that tells."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123 - one line
            boot_id = file.read().strip()
        namespaces = [str(os.stat(f"/proc/self/ns/{n}").st_ino) for n in ("net", "pid")]  # noqa: PTH116
    except OSError:
        return ""
    return " ".join([boot_id, os.uname().nodename, *namespaces])


def read_secret_line(stdin: int = 0) -> bytes:
    """The first line; no byte more is taken. Raises Refused where there is none."""
    line = b""
    while (byte := os.read(stdin, 1)) not in (b"", b"\n"):
        line += byte
    if not line.strip():
        raise UsageError("the job's secret did not come through standard input")
    return line.strip()


def end_when_stdin_closes(stdin: int = 0) -> None:
    """From now on SIGTERM to ourselves when standard input ends: whoever started us is gone."""
    threading.Thread(target=_end_at_stdin_end, args=(stdin,), daemon=True).start()


def _end_at_stdin_end(stdin: int) -> None:
    try:
        while os.read(stdin, 4096):
            pass
    except OSError:
        pass  # as good as an end
    os.kill(os.getpid(), signal.SIGTERM)
