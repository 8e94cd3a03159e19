"""The process that the workers are children of; it outlives the agent just long enough to end them.

It is forked from the agent before anything heavy is imported, lives in a session of its own (so that a
signal to the agent's process group does not reach it) and is a child subreaper (prctl(2)): orphaned
grandchildren come to it. It holds a socket to the agent. When that closes, however the agent ended,
it ends everything below itself. Only where all ended well, and the agent says so (``spare``), is left alone
what has a session of its own by then, and none of their streams. Workers are killed with it
(PR_SET_PDEATHSIG), should it die first.

Messages are JSON datagrams on a SOCK_SEQPACKET pair, closed set: ``spawn`` (with two descriptors),
``signal``, ``end``; a long ``spawn`` lies in a file, the third descriptor. Back come ``spawned``, ``failed``,
``exited``, ``ended``.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Iterable
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
MESSAGE_BYTES = 1 << 20
MAX_DATAGRAM_BYTES = 1 << 16
"""Longer messages go through a file: a socket takes only so many bytes at once (net.core.wmem_max)."""
_RESET = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGCHLD,
    signal.SIGPIPE,  # Python ignores these two, and what is ignored stays so across exec
    signal.SIGXFSZ,
)
UNKILLABLE_WAIT_S = 10.0
"""How long a process that SIGKILL does not end is waited for."""
LAST_GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL when the agent is gone and cannot say."""


def fork_reaper(
    remove: str, reserved_ports: Iterable[socket.socket] = ()
) -> tuple[socket.socket, int]:
    """Fork the reaper; return the agent's end of the socket and the reaper's pid.

    ``remove`` is the folder that the reaper removes if the agent ends without saying so;
    ``reserved_ports`` are the agent's own, and closed in the reaper. Raises OSError if no process
    can be made.

    Call it while the process has one thread. The agent becomes a subreaper too: if the reaper is
    killed, its children come to the agent.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_BYTES)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        pid = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        raise
    if pid == 0:
        ours.close()
        # Else they would stay bound here when the agent releases them.
        for reserved in reserved_ports:
            reserved.close()
        _run_reaper(theirs, remove)
    theirs.close()
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    return ours, pid


def send_spawn(reaper: socket.socket, message: dict[str, Any], fds: list[int]) -> None:
    """Send a ``spawn`` with its two descriptors. Raises OSError."""
    data = json.dumps(message).encode()
    if len(data) <= MAX_DATAGRAM_BYTES:
        socket.send_fds(reaper, [data], fds)
        return
    import tempfile  # few commands are so long

    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        socket.send_fds(reaper, [b"{}"], [*fds, file.fileno()])


def open_standard_streams() -> None:
    """Point those of 0, 1 and 2 that are closed to /dev/null; otherwise the next pipe would get the
    number, and a worker's output would mix with our own."""
    while (fd := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(fd, True)
    os.close(fd)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:  # Python's own answer to `>&-`
            setattr(sys, name, os.fdopen(number, "w", closefd=False))


def _run_reaper(agent: socket.socket, remove: str) -> NoReturn:
    """Live as the reaper until the agent's end of the socket closes."""
    code = 1
    try:
        os.setsid()
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        # Not by a signal that a batch system sends to all processes of the job: the workers would be
        # killed with it (PR_SET_PDEATHSIG), without their grace. It ends when the socket closes.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _Reaper(agent, remove).loop()
        code = 0
    finally:
        # Never back: the frames above, their finally blocks and what atexit has are the agent's.
        os._exit(code)


class _Reaper:
    def __init__(self, agent: socket.socket, remove: str) -> None:
        self.agent = agent
        self.remove = remove
        self.spawned: dict[int, int] = {}
        self.sessions: set[int] = set()
        self.streams: set[tuple[int, int]] = set()
        self.spare = False
        self.awake, wake = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(self.awake, False)
        # SIGCHLD leaves a byte here: one that comes between a look and select(2) is not lost.
        signal.set_wakeup_fd(wake)
        # Without a handler in Python, SIGCHLD stays ignored by default and writes no byte.
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def loop(self) -> None:
        agent = self.agent.fileno()
        while True:
            ready, _, _ = select.select([agent, self.awake], [], [])
            if self.awake in ready:
                self._drain()
                self._reap()
            if agent in ready:
                try:
                    data, fds, _, _ = socket.recv_fds(self.agent, MESSAGE_BYTES, 4)
                except OSError:
                    # ECONNRESET: the agent died before it had read all of our messages.
                    data, fds = b"", []
                if not data:
                    self._end_all(LAST_GRACE)
                    _remove(self.remove)
                    return
                if len(fds) > 2:
                    with os.fdopen(fds.pop(), "rb") as file:
                        # It shares its offset with the agent's descriptor, which is at the end.
                        file.seek(0)
                        data = file.read()
                self._obey(json.loads(data), fds)

    def _drain(self) -> None:
        try:
            os.read(self.awake, 4096)
        except BlockingIOError:
            pass

    def _obey(self, message: dict[str, Any], fds: list[int]) -> None:
        if message["do"] == "spawn":
            self._spawn(message, fds)
        elif message["do"] == "signal":
            self._signal(message["pid"], message["signal"], message["group"])
        elif message["do"] == "end":
            self.spare = bool(message.get("spare"))
            self._end_all(float(message["grace"]))
            survivors = _first_of_each_session(_pids_below(os.getpid()))
            self._tell({"ended": True, "left": survivors} if survivors else {"ended": True})

    def _tell(self, message: dict[str, Any]) -> None:
        try:
            self.agent.send(json.dumps(message).encode())
        except OSError:
            pass  # the agent is gone; the loop will see it

    def _spawn(self, message: dict[str, Any], fds: list[int]) -> None:
        """Fork and exec by hand: the child needs its own pid in its environment."""
        asked_at = time.monotonic()
        try:
            failed, report, pid = _fork_with_pipe()
        except OSError as full:  # too many processes, or files: those that run go on
            for fd in fds:
                os.close(fd)
            why = f"{message['command'][0]}: {full.strerror}"
            self._tell({"failed": message["worker"], "why": why, "at": asked_at})
            return
        if pid == 0:
            _exec_worker(message, fds, report)
        # Our copy first: as long as it is open, the read below does not end.
        os.close(report)
        for fd in fds:
            self.streams.add(_file_identity(fd))
            os.close(fd)
        with os.fdopen(failed, "rb") as file:
            # Ends at the child's exec, which closes its copy: "spawned" is told of the program, not
            # of a copy of this process.
            error = file.read()
        if error:
            os.waitpid(pid, 0)
            self._tell({"failed": message["worker"], "why": error.decode(), "at": asked_at})
            return
        self.spawned[pid] = message["worker"]
        self.sessions.add(pid)
        # A new round: that the one before ended well says nothing of it.
        self.spare = False
        self._tell({"spawned": message["worker"], "pid": pid, "at": asked_at})

    def _reap(self) -> None:
        while True:
            try:
                # Whatever ended, orphans of the workers too: nobody else would reap them.
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            worker = self.spawned.pop(pid, None)
            if worker is not None:
                self._tell(
                    {
                        "exited": worker,
                        "pid": pid,
                        "at": time.monotonic(),
                        "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
                        "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
                        "maxrss": usage.ru_maxrss,
                    }
                )

    def _signal(self, pid: int, number: int, group: bool) -> None:
        # Only what was spawned here and is not reaped yet: its pid cannot be somebody else's.
        if pid in self.spawned:
            try:
                (os.killpg if group else os.kill)(pid, number)
            except OSError:
                pass

    def _end_all(self, grace: float) -> None:
        """Send SIGTERM to everything below, SIGKILL after ``grace`` s, until nothing is left that
        can be ended."""
        for pid in self._to_end():
            _kill(pid, signal.SIGTERM)
            # What is stopped (Ctrl-Z) meets its SIGTERM only once it goes on.
            _kill(pid, signal.SIGCONT)
        deadline = time.monotonic() + grace
        # Orphans come to this process (subreaper): once it has no child, nothing is left below.
        while self._to_end() if self.spare else _has_children():
            self._drain()
            self._reap()
            if time.monotonic() >= deadline + UNKILLABLE_WAIT_S:
                break  # in a driver (state D), or not ours to kill (sudo): nobody waits for those for ever
            if time.monotonic() >= deadline:
                for pid in self._to_end():
                    _kill(pid, signal.SIGKILL)
            # With a timeout: SIGCHLD tells of children alone, not of those below them.
            select.select([self.awake], [], [], 0.05)
        self._drain()
        self._reap()

    def _to_end(self) -> list[int]:
        """Return everything below. After a good end, leave out what has a session of its own
        (setsid(2)) and none of the workers' streams: it was meant to live on, as it does under
        any other launcher."""
        below = _pids_below(os.getpid())
        return [pid for pid in below if self._ours(pid)] if self.spare else below

    def _ours(self, pid: int) -> bool:
        try:
            if _process_state(pid) in b"ZX":
                return False  # one whose parent lives on and does not ask for it would be waited for for ever
            # A pid of the list is a session for as long as any process is in it, also when its
            # leader has ended.
            if os.getsid(pid) in self.sessions:
                return True
            files = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
            return any(_file_identity(f"/proc/{pid}/fd/{name}") in self.streams for name in files)
        except OSError:  # gone meanwhile
            return False


def _fork_with_pipe() -> tuple[int, int, int]:
    """Fork; return both ends of a pipe that the child's exec closes, and the child's pid, 0 in the
    child. Raises OSError."""
    failed, report = os.pipe2(os.O_CLOEXEC)
    try:
        return failed, report, os.fork()
    except OSError:
        os.close(failed)
        os.close(report)
        raise


def _process_state(pid: int) -> bytes:
    with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
        return file.read().rpartition(b")")[2].split()[0]


def _file_identity(path_or_fd: int | str) -> tuple[int, int]:
    try:
        file_stat = os.stat(path_or_fd)  # noqa: PTH116
    except OSError:
        return 0, 0
    return file_stat.st_dev, file_stat.st_ino


def _exec_worker(message: dict[str, Any], fds: list[int], report: int) -> NoReturn:
    """Become the worker: set its session, output and environment, then exec its program."""
    current_target = ""
    try:
        os.setsid()
        # Here, in the child: a fork does not inherit it, an exec keeps it (prctl(2)).
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # The pipe is shared with the reaper: a signal that comes before the exec would wake that.
        signal.set_wakeup_fd(-1)
        for number in _RESET:
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        # dup2 makes copies that an exec leaves open. The originals are above 2, see
        # `open_standard_streams`.
        for fd, standard in zip(fds, (1, 2), strict=True):
            os.dup2(fd, standard)
            os.close(fd)
        environment = dict(os.environ, **message["environment"], ALLABOARD_PID=str(os.getpid()))
        if message["worker"] < 0:  # no worker: it has no part in the job, as a worker's child
            del environment["ALLABOARD_PID"]
        current_target = message["folder"]
        os.chdir(current_target)
        current_target = message["command"][0]
        os.execvpe(current_target, message["command"], environment)
    # Nothing may leave this frame: the callers are the reaper's, and this is a copy of it.
    except BaseException as error:
        # What was asked for: the error names the last folder of PATH that was tried.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        os.write(report, f"{current_target}: {reason}".encode(errors="replace")[:4000])
        os._exit(127)


def _pids_below(root: int) -> list[int]:
    """Return every process below ``root``, by the parents that /proc shows."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would cost the import
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            parents.setdefault(parent, []).append(int(name))
    pids, queue = [], list(parents.get(root, ()))
    while queue:
        pid = queue.pop()
        pids.append(pid)
        queue += parents.pop(pid, ())  # popped: a pid reused between two reads closes no circle
    return pids


def _first_of_each_session(pids: list[int]) -> list[int]:
    first_pids: dict[int, int] = {}
    for pid in pids:
        try:
            if _process_state(pid) not in b"ZX":
                first_pids.setdefault(os.getsid(pid), pid)
        except OSError:
            continue  # gone meanwhile
    return list(first_pids.values())


def _remove(folder: str) -> None:
    """Remove the black boxes: a flat folder, gone already if the agent ended well."""
    try:
        for name in os.listdir(folder):  # noqa: PTH208
            os.unlink(f"{folder}/{name}")  # noqa: PTH108
        os.rmdir(folder)  # noqa: PTH106
    except OSError:
        pass


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
