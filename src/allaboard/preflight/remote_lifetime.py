"""The preflight on a host that `preflight --hosts` started: it prints which host it is, takes the secret,
and ends when ssh does.

ssh sends no signal to the command that it started; all that the command sees is that its standard input
ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from allaboard.options.usage_error import UsageError

HOST_IDENTITY_PREFIX = "allaboard preflight runs on: "
"""Beginning of the line that `--hosts` reads and does not pass on."""
STDIN = 0


def print_host_identity() -> None:
    """Print to standard error what identifies this host, so that two names of one host are recognised."""
    sys.stderr.write(f"{HOST_IDENTITY_PREFIX}{host_identity()}\n")
    sys.stderr.flush()


def host_identity() -> str:
    """Return the boot id, the host name, and the namespaces of network and processes; "" if the kernel does
    not tell. Two containers on one machine are two hosts."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:  # noqa: PTH123 - one line
            boot_id = file.read().strip()
        namespaces = [str(os.stat(f"/proc/self/ns/{n}").st_ino) for n in ("net", "pid")]  # noqa: PTH116
    except OSError:
        return ""
    return " ".join([boot_id, os.uname().nodename, *namespaces])


def read_secret_line() -> bytes:
    """Return the first line of standard input, and read no byte more. Raises UsageError if there is
    none."""
    line = b""
    # Not through sys.stdin, whose buffer would also take what `end_when_stdin_closes` waits for.
    while (byte := os.read(STDIN, 1)) not in (b"", b"\n"):
        line += byte
    if not line.strip():
        raise UsageError("the job's secret did not come through standard input")
    return line.strip()


def end_when_stdin_closes() -> None:
    """Send SIGTERM to this process when standard input ends: whoever started it is gone."""
    threading.Thread(target=_end_at_stdin_end, daemon=True).start()


def _end_at_stdin_end() -> None:
    try:
        while os.read(STDIN, 4096):
            pass
    except OSError:
        pass  # as good as the end of the stream
    os.kill(os.getpid(), signal.SIGTERM)
