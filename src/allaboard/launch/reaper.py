"""The process that the workers are children of; it outlives the agent just long enough to end them.

It is forked from the agent before anything heavy is imported, lives in a session of its own (so that a
signal to the agent's process group does not reach it) and is a child subreaper (prctl(2)): orphaned
grandchildren come to it. It holds a socket to the agent. When that closes, however the agent ended,
it ends everything below itself. Only where all ended well, and the agent says so (``spare``), is left alone
what has a session of its own by then, and none of their streams. Between two rounds, processes that stand by
for the next one are left alone (``keep``). Workers are killed with it
(PR_SET_PDEATHSIG), should it die first; what was below them comes to its parent, the guard (`orphan_guard`).

Messages are JSON datagrams on a SOCK_SEQPACKET pair, closed set: ``spawn`` (with two descriptors),
``signal``, ``end``; a long ``spawn`` lies in a file, the third descriptor. One that ``serves`` starts the
process that forks workers (`fork_server_link`); those with ``fork`` are forked by it, as long as it can, and
``withdraw`` takes back those that are not yet. Back come ``spawned``, ``failed``, ``withdrawn``, ``exited``,
``ended``.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any, NoReturn

from allaboard.launch import orphan_guard
from allaboard.launch.descendants import (
    file_identity,
    first_of_each_session,
    has_children,
    has_ended,
    pids_below,
)
from allaboard.launch.fork_server_link import (
    DESCRIPTOR_ARGUMENT,
    FORK_SERVER_NUMBER,
    ForkRequest,
    ForkServerLink,
)
from allaboard.launch.worker_exec import exec_worker, fork_with_pipe

MESSAGE_BYTES = 1 << 20
MAX_DATAGRAM_BYTES = 1 << 16
"""Longer messages go through a file: a socket takes only so many bytes at once (net.core.wmem_max)."""
NO_MEMORY_WAIT_S = 5.0
"""How long the kernel may have no memory for a message to the agent."""
LAST_GRACE = 5.0
"""Seconds between SIGTERM and SIGKILL when the agent is gone and cannot say."""


def fork_reaper(remove: str) -> tuple[socket.socket, int]:
    """Fork the guard, and from it the reaper; return the agent's end of the socket and the guard's pid.

    The guard (`orphan_guard`) ends when the reaper has, so who waits for it has waited for both.

    ``remove`` is the folder that the reaper removes if the agent ends without saying so. Raises OSError if no
    process can be made.

    Call it while the process has one thread, and before it holds ports: they would stay bound in the reaper.
    The agent becomes a subreaper too: if the reaper is killed, its children come to the guard, and if that is
    killed too, to the agent.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_BYTES)
    sys.stdout.flush()
    sys.stderr.flush()
    agent = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        raise
    if pid == 0:
        ours.close()
        _fork_below_guard(theirs, remove, agent)
    theirs.close()
    orphan_guard.become_subreaper()
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


def _fork_below_guard(theirs: socket.socket, remove: str, agent: int) -> NoReturn:
    """Fork the reaper, and live as its guard. If there is no process to be had for it, the guard is the
    reaper itself: the job has one process less to lose."""
    try:
        os.setsid()
        orphan_guard.become_subreaper()
        pid = os.fork()
    except OSError:
        pid = 0
    except BaseException:
        os._exit(1)
    if pid:
        theirs.close()  # else the agent would not see that the reaper is gone
        orphan_guard.live_as_guard(pid, agent, remove)
    _run_reaper(theirs, remove, agent)


def _run_reaper(agent: socket.socket, remove: str, agent_pid: int) -> NoReturn:
    """Live as the reaper until the agent's end of the socket closes."""
    code = 1
    try:
        if os.getsid(0) != os.getpid():
            os.setsid()
        orphan_guard.show_title(orphan_guard.REAPER_TITLE.format(agent=agent_pid), "job-reaper")
        orphan_guard.become_subreaper()
        # Not by a signal that a batch system sends to all processes of the job: the workers would be
        # killed with it (PR_SET_PDEATHSIG), without their grace. It ends when the socket closes.
        for number in orphan_guard.IGNORED_SIGNALS:
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
        self.keep: frozenset[int] = frozenset()
        self.fork_server: ForkServerLink | None = None
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
            link = self.fork_server
            forking = [link.fileno()] if link is not None and link.is_open else []
            ready, _, _ = select.select([agent, self.awake, *forking], [], [])
            if forking and forking[0] in ready:
                self._note_forked()
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
                    self.keep = frozenset()
                    if self.fork_server is not None:
                        self.fork_server.close()
                    self._end_all(LAST_GRACE)
                    orphan_guard.remove_flat_folder(self.remove)
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
        if message["do"] == "spawn" and message.get("serves"):
            self._spawn_fork_server(message, fds)
        elif message["do"] == "spawn" and message.get("fork") and self.fork_server is not None:
            self.fork_server.ask(ForkRequest(message, fds))
            self._note_forked()
        elif message["do"] == "spawn":
            self._spawn(message, fds)
        elif message["do"] == "signal":
            self._signal(message["pid"], message["signal"], message["group"])
        elif message["do"] == "withdraw":
            self._withdraw()
        elif message["do"] == "end":
            self.spare = bool(message.get("spare"))
            self.keep = frozenset(message.get("keep", ())) | self._pids_of(FORK_SERVER_NUMBER)
            self._end_all(float(message["grace"]))
            survivors = first_of_each_session(pids_below(os.getpid(), self.keep))
            answer = {"ended": True, "left": survivors} if survivors else {"ended": True}
            self._tell({**answer, "of": message["of"]} if "of" in message else answer)

    def _tell(self, message: dict[str, Any]) -> None:
        """Send a message to the agent. Raises OSError if the kernel has no memory for it for too long: the
        agent, which would wait for it for ever, then sees that the reaper ends."""
        data, deadline = json.dumps(message).encode(), time.monotonic() + NO_MEMORY_WAIT_S
        while True:
            try:
                self.agent.send(data)
                return
            except OSError as error:
                if error.errno not in (errno.ENOBUFS, errno.ENOMEM):
                    return  # the agent is gone; the loop will see it
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def _spawn(self, message: dict[str, Any], fds: list[int]) -> None:
        """Fork and exec by hand: the child needs its own pid in its environment."""
        asked_at = time.monotonic()
        try:
            failed, report, pid = fork_with_pipe()
        except OSError as full:  # too many processes, or files: those that run go on
            for fd in fds:
                os.close(fd)
            why = f"{message['command'][0]}: {full.strerror}"
            self._tell({"failed": message["worker"], "why": why, "at": asked_at})
            return
        if pid == 0:
            exec_worker(message, fds, report)
        # Our copy first: as long as it is open, the read below does not end.
        os.close(report)
        for fd in fds:
            self.streams.add(file_identity(fd))
            os.close(fd)
        with os.fdopen(failed, "rb") as file:
            # Ends at the child's exec, which closes its copy: "spawned" is told of the program, not
            # of a copy of this process.
            error = file.read()
        if error:
            os.waitpid(pid, 0)
            self._tell({"failed": message["worker"], "why": error.decode(), "at": asked_at})
            return
        self._note_spawned(message["worker"], pid, asked_at)

    def _note_spawned(self, worker: int, pid: int, asked_at: float) -> None:
        self.spawned[pid] = worker
        self.sessions.add(pid)
        # A new round: that the one before ended well says nothing of it.
        self.spare = False
        self._tell({"spawned": worker, "pid": pid, "at": asked_at})

    def _spawn_fork_server(self, message: dict[str, Any], fds: list[int]) -> None:
        """Start the process that imports for all workers, with its end of a socket."""
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError as full:  # too many files: the workers start in the ordinary way
            for fd in fds:
                os.close(fd)
            self._tell({"failed": FORK_SERVER_NUMBER, "why": str(full.strerror)})
            return
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE_BYTES)
        theirs.set_inheritable(True)
        message["command"][DESCRIPTOR_ARGUMENT] = str(theirs.fileno())
        self._spawn(message, fds)
        theirs.close()
        self.fork_server = ForkServerLink(ours, send_spawn)

    def _note_forked(self) -> None:
        """Take over what was forked; start in the ordinary way what will not be."""
        link = self.fork_server
        if link is None:
            return
        for (message, fds), pid in link.take_forked():
            for fd in fds:
                self.streams.add(file_identity(fd))
                os.close(fd)
            self._note_spawned(message["worker"], pid, time.monotonic())
        unserved = link.take_unserved()
        if unserved:
            why = link.why_unfit or "the process that imports for all has ended"
            self._tell({"failed": FORK_SERVER_NUMBER, "why": why})
        if not link.is_open:
            self.fork_server = None
        for message, fds in unserved:
            self._spawn(message, fds)

    def _withdraw(self) -> None:
        """Start none of the workers that are not forked yet."""
        self._note_forked()
        dropped = self.fork_server.drop_asked() if self.fork_server is not None else []
        for worker in dropped:
            self._tell({"withdrawn": worker})
        if dropped:
            for pid in self._pids_of(FORK_SERVER_NUMBER):
                _kill(pid, signal.SIGKILL)

    def _pids_of(self, number: int) -> frozenset[int]:
        return frozenset(pid for pid, worker in self.spawned.items() if worker == number)

    def _reap(self) -> None:
        # A forked worker's pid is told before it runs, so it is known here before its end is seen.
        self._note_forked()
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
        self._withdraw()
        for pid in self._to_end():
            _kill(pid, signal.SIGTERM)
            # What is stopped (Ctrl-Z) meets its SIGTERM only once it goes on.
            _kill(pid, signal.SIGCONT)
        deadline = time.monotonic() + grace
        # Orphans come to this process (subreaper): once it has no child, nothing is left below.
        while self._to_end() if self.spare or self.keep else has_children():
            self._drain()
            self._reap()
            if time.monotonic() >= deadline + orphan_guard.UNKILLABLE_WAIT_S:
                break  # in a driver (state D), or not ours to kill (sudo): nobody waits for those for ever
            if time.monotonic() >= deadline:
                for pid in self._to_end():
                    _kill(pid, signal.SIGKILL)
            # With a timeout: SIGCHLD tells of children alone, not of those below them.
            select.select([self.awake], [], [], 0.05)
        self._drain()
        self._reap()

    def _to_end(self) -> list[int]:
        """Return everything below but what is kept. After a good end, leave out what has a session of its own
        (setsid(2)) and none of the workers' streams: it was meant to live on, as it does under
        any other launcher."""
        below = pids_below(os.getpid(), self.keep)
        return [pid for pid in below if self._ours(pid)] if self.spare else below

    def _ours(self, pid: int) -> bool:
        try:
            if has_ended(pid):
                return False  # one whose parent lives on and does not ask for it would be waited for for ever
            # A pid of the list is a session for as long as any process is in it, also when its
            # leader has ended.
            if os.getsid(pid) in self.sessions:
                return True
            files = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208
            return any(file_identity(f"/proc/{pid}/fd/{name}") in self.streams for name in files)
        except OSError:  # gone meanwhile
            return False


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass
