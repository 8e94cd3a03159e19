"""Makes a process that nobody started for us a member: a black box, and an agent of its own beside it.

The agent is a process of its own, so that it goes on while native code holds the GIL here. It ends with
this process, or when it is released. Whatever fails in here, the program goes on without a roll call.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile

from . import blackbox_folder, member, text_records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Peer:
    """The agent beside this process. ``run`` is the folder where it notes what it finds."""

    def __init__(self, folder: str, process: subprocess.Popen[bytes]) -> None:
        self.folder = folder
        self.run = os.path.join(folder, "run")
        self.process = process

    def release(self) -> None:
        """The framework's init is done, or has failed: lets the agent go, which removes the folder."""
        member.here.sleep()
        member.here.folder = ""
        if self.process.stdin is not None:
            self.process.stdin.close()
        # Kept: a Popen that is dropped while its process runs gives a ResourceWarning (-X dev).
        released_agents[:] = [p for p in released_agents if p.poll() is None] + [self.process]


ATTACHED = "attached"
"""The note of a process that started before its agent: nobody keeps what it prints."""
START_TIMEOUT_S = 10.0
"""Seconds that an interpreter may take to start."""
released_agents: list[subprocess.Popen[bytes]] = []
"""Agents that were let go: they are not waited for."""


def attach(
    declared: dict[str, Any], timeout: float | None, watch: bool, coordinator: str = ""
) -> Peer | None:
    """Starts the agent and makes this process a member; None, and a line on stderr, where that fails.

    ``timeout`` (s) is a strict bound for the roll call and for the framework's own call after it; None
    only reports. ``coordinator``: where all meet, as for `allaboard run --coordinator`. ``watch``: the agent
    stays until this process ends, which nobody will tell it.
    """
    folder = ""
    try:
        folder = _folder()
        os.mkdir(os.path.join(folder, "run"), 0o700)
        order = {
            "pid": os.getpid(),
            "boxes": folder,
            "rank": declared["rank"],
            "place": _place(declared),
            "timeout": timeout,
            "watch": watch,
            "coordinator": coordinator,
            "argv": sys.argv[:1],
            "run_dir": os.environ.get("ALLABOARD_RUN_DIR", "") if watch else "",
        }
        module = "allaboard.dropin.attach.daemonize" if watch else "allaboard.dropin.attach"
        process = subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(order, default=text_records.plain)],
            stdin=subprocess.DEVNULL if watch else subprocess.PIPE,
            env=_environment(),
            start_new_session=True,  # the terminal's Ctrl-C is the program's
        )
        if watch:
            _wait(process)
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        _say("no roll call: %s: %s" % (type(error).__name__, error))
        return None
    member.here.folder = folder
    member.here.gated = "cluster"
    member.here.notes[ATTACHED] = "1"
    return Peer(folder, process)


def _wait(process: subprocess.Popen[bytes]) -> None:
    """Wait until the agent is nobody's child: the program may wait for all of its own children."""
    try:
        process.wait(START_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        released_agents.append(process)


def _folder() -> str:
    """Make a folder, in memory if that is possible."""
    prefix = "allaboard-%d-" % os.getuid()
    for base in blackbox_folder.folders_with_room(1):
        try:
            return tempfile.mkdtemp(prefix=prefix, dir=base)
        except OSError:
            continue
    raise OSError("no room for the black boxes in /dev/shm or the temporary folder")


def _place(declared: dict[str, Any]) -> str:
    """``host:port`` where all meet, as far as this process was told; empty for a file."""
    cluster = declared.get("cluster") or {}
    for task in ("chief:0", "worker:0"):
        if task in cluster:
            return str(cluster[task])
    scheme, _, host_and_path = str(declared.get("place", "")).partition("://")
    return host_and_path.partition("/")[0] if scheme == "tcp" else ""


def _environment() -> dict[str, str]:
    """Ours, with the package where this process found it, and without what would hook the agent."""
    environment = {k: v for k, v in os.environ.items() if k not in ("ALLABOARD", "PYTHONSTARTUP")}
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment["PYTHONPATH"] = os.pathsep.join(
        p for p in (home, environment.get("PYTHONPATH")) if p
    )
    return environment


def _say(text: str) -> None:
    try:
        sys.stderr.write("allaboard: %s\n" % text)
        sys.stderr.flush()
    except Exception:
        pass
