"""The reaper with real processes: no orphan is left, however the agent ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from allaboard.hosts import proc
from reported import wait_until

LIMIT = 20.0
AGENT = """
import json, os, socket, sys
from allaboard.launch import reaper
kept = open(os.devnull)
end, pid = reaper.fork_reaper(sys.argv[1])
print(json.dumps({"guard": pid}), flush=True)
for line in sys.stdin:
    order = json.loads(line)
    if order["do"] == "hear":
        print(end.recv(1 << 16).decode() or "{}", flush=True)
    elif order["do"] == "close":
        end.close()
    elif order["do"] == "spawn":
        files = [os.open(order.pop(n), os.O_CREAT | os.O_WRONLY, 0o600) for n in ("out", "err")]
        socket.send_fds(end, [json.dumps(order).encode()], files)
        for fd in files:
            os.close(fd)
    else:
        end.send(json.dumps(order).encode())
"""
DAEMON = """
import os, signal, sys, time
if os.fork():
    os.wait(); signal.pause()
os.setsid()
if os.fork():
    os._exit(0)
signal.signal(signal.SIGTERM, getattr(signal, sys.argv[1]))
print(os.getpid(), flush=True)
signal.pause()
"""
"""A worker that leaves a daemon behind: two forks and a session of its own."""


def only_child_of(pid: int) -> int:
    """The child that this process has, or gets in a moment."""
    until = time.monotonic() + LIMIT
    while True:
        for folder in Path("/proc").glob("[0-9]*"):
            stat = proc.read_stat(int(folder.name))
            if stat is not None and stat.ppid == pid:
                return int(folder.name)
        assert time.monotonic() < until, "it has no child"


class Agent:
    """A process that holds a reaper as the agent does, obeying one order a line."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.boxes = folder / "boxes"
        self.boxes.mkdir()
        (self.boxes / "1.box").write_text("x")
        self.process = subprocess.Popen(
            [sys.executable, "-c", AGENT, str(self.boxes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )
        self.guard = int(self._line()["guard"])
        self.reaper = only_child_of(self.guard)

    def kill(self) -> None:
        """Whatever state it is in."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = json.loads(self.process.stdout.readline())
        assert isinstance(line, dict)
        return line

    def tell(self, **order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        self.tell(do="hear")
        return self._line()

    def ask(self, *command: str, worker: int = 0, **rest: Any) -> dict[str, Any]:
        """Asks for a worker; what comes back."""
        order = {"folder": str(self.folder), "environment": {}} | rest
        out, err = (str(self.folder / f"{worker}.{n}") for n in ("out", "err"))
        self.tell(do="spawn", worker=worker, command=command, out=out, err=err, **order)
        return self.hear()

    def spawn(self, *command: str, worker: int = 0, **rest: Any) -> int:
        told = self.ask(*command, worker=worker, **rest)
        assert told.get("spawned") == worker, told
        return int(told["pid"])

    def python(self, code: str, *words: str, worker: int = 0, **rest: Any) -> int:
        return self.spawn(sys.executable, "-c", code, *words, worker=worker, **rest)

    def said(self, worker: int = 0) -> str:
        """What a worker printed, once it has printed a line."""
        file = self.folder / f"{worker}.out"
        until = time.monotonic() + LIMIT
        while not (text := file.read_text()).endswith("\n"):
            assert time.monotonic() < until, "it says nothing"
        return text

    def daemon(self, on_term: str = "SIG_DFL") -> tuple[int, int]:
        """A worker and the daemon that it left."""
        worker = self.python(DAEMON, on_term)
        return worker, int(self.said())


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    one = Agent(tmp_path)
    fds = [os.pidfd_open(one.reaper), os.pidfd_open(one.guard)]
    yield one
    one.kill()
    assert all(map(ended, fds)), "the reaper or its guard outlives its agent"
    for fd in fds:
        os.close(fd)
    assert not one.boxes.exists(), "the black boxes are left behind"


def ended(pidfd: int) -> bool:
    """Whether this process ends within the limit."""
    return bool(select.select([pidfd], [], [], LIMIT)[0])


class Gone:
    """Asserts that the processes named at the start are gone at the end."""

    def __init__(self, *pids: int) -> None:
        self.fds = {pid: os.pidfd_open(pid) for pid in pids}

    def __enter__(self) -> None:
        assert all(proc.read_stat(pid) is not None for pid in self.fds)

    def __exit__(self, *_: object) -> None:
        left = [pid for pid, fd in self.fds.items() if not ended(fd)]
        for fd in self.fds.values():
            os.close(fd)
        assert left == []


# -- what it reports ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("pass", (0, None)),
        ("raise SystemExit(7)", (7, None)),
        ("import os; os.kill(os.getpid(), 9)", (None, 9)),
        ("import os; os.abort()", (None, int(signal.SIGABRT))),
    ],
)
def test_how_a_worker_ended(agent: Agent, code: str, expected: tuple[int, int]) -> None:
    before = time.monotonic()
    pid = agent.python(code, worker=3)
    told = agent.hear()
    assert (told["exited"], told["pid"]) == (3, pid)
    assert (told["code"], told["signal"]) == expected
    assert before <= told["at"] <= time.monotonic()
    assert told["maxrss"] > 0


def test_several_workers_are_told_apart(agent: Agent) -> None:
    pids = [agent.python("import signal; signal.pause()", worker=n) for n in range(3)]
    for worker in (1, 0, 2):
        agent.tell(do="signal", pid=pids[worker], signal=int(signal.SIGKILL), group=False)
        told = agent.hear()
        assert (told["exited"], told["pid"], told["signal"]) == (worker, pids[worker], 9)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-program", "no-such-program: No such file or directory"),
        ("/no/such/program", "/no/such/program: No such file or directory"),
        ("/etc/passwd", "/etc/passwd: Permission denied"),
        ("/", "/: Permission denied"),
    ],
)
def test_a_command_that_cannot_be_started(agent: Agent, command: str, why: str) -> None:
    told = agent.ask(command, "-x", worker=2)
    assert (told["failed"], told["why"]) == (2, why)
    assert agent.spawn("/bin/true", worker=2), "and it goes on"


def test_a_folder_that_is_not_there(agent: Agent) -> None:
    told = agent.ask("/bin/true", folder="/no/such/folder")
    assert told["why"] == "/no/such/folder: No such file or directory"


# -- what a worker meets ----------------------------------------------------------------------------


def test_a_worker_knows_itself(agent: Agent) -> None:
    code = "import os; print(os.environ['ALLABOARD_PID'], os.environ['RANK'], os.getcwd(), os.getsid(0))"
    pid = agent.python(code, environment={"RANK": "5"})
    assert agent.said().split() == [str(pid), "5", str(agent.folder), str(pid)]


def test_its_signals_are_as_a_shell_would_leave_them(agent: Agent) -> None:
    agent.spawn("/bin/cat", "/proc/self/status")
    assert agent.hear()["code"] == 0
    told = dict(line.split(":\t", 1) for line in agent.said().splitlines())
    masks = {name: int(told[name], 16) for name in ("SigBlk", "SigIgn", "SigCgt")}
    assert masks["SigIgn"] >> (signal.SIGPIPE - 1) & 1 == 0
    # What our own caller ignores (SIGQUIT under `command &`) stays ignored, as a shell leaves it.
    status = Path("/proc/self/status").read_text().splitlines()
    inherited = next(int(x.split()[1], 16) for x in status if x.startswith("SigIgn:"))
    assert masks["SigIgn"] & ~inherited == 0
    assert (masks["SigBlk"], masks["SigCgt"]) == (0, 0)


def test_a_pipe_that_closes_ends_who_writes_to_it(agent: Agent) -> None:
    agent.spawn("/bin/bash", "-c", "yes | head -n 1; echo ${PIPESTATUS[0]}")
    agent.hear()
    assert agent.said() == f"y\n{128 + signal.SIGPIPE}\n"


def test_nothing_but_the_three_streams_is_open(agent: Agent) -> None:
    for worker in range(3):
        agent.spawn("/bin/sh", "-c", "ls -l /proc/$$/fd", worker=worker)
        assert agent.hear()["code"] == 0
        lines = [line.split()[-3::2] for line in agent.said(worker).splitlines()[1:]]
        own = {str(n): str(agent.folder / f"{worker}.{s}") for n, s in ((1, "out"), (2, "err"))}
        assert dict(lines) == {"0": "/dev/null"} | own


def test_a_descriptor_that_the_user_hands_down_arrives(tmp_path: Path) -> None:
    """As `--config <(command)` of a shell does."""
    ours, theirs = os.pipe()
    os.write(theirs, b"lr: 0.1\n")
    os.close(theirs)
    agent = Agent(tmp_path, pass_fds=[ours])
    agent.spawn("/bin/cat", f"/dev/fd/{ours}")
    assert agent.said() == "lr: 0.1\n"
    os.close(ours)
    with Gone(agent.reaper):
        agent.kill()


# -- how it ends everything -------------------------------------------------------------------------

WAYS = ["close", "leave", "kill", "kill group"]


def end(agent: Agent, way: str) -> None:
    assert agent.process.stdin is not None
    if way == "close":
        agent.tell(do="close")
    elif way == "leave":
        agent.process.stdin.close()
    elif way == "kill":
        agent.process.kill()
    else:
        os.killpg(agent.process.pid, signal.SIGKILL)


@pytest.mark.parametrize("way", WAYS)
def test_no_orphan_is_left(agent: Agent, way: str) -> None:
    worker, daemon = agent.daemon()
    with Gone(worker, daemon, agent.reaper):
        end(agent, way)
    assert not agent.boxes.exists()


def test_a_daemon_whose_worker_has_ended_is_found(agent: Agent) -> None:
    worker, daemon = agent.daemon()
    agent.tell(do="signal", pid=worker, signal=int(signal.SIGKILL), group=False)
    assert agent.hear()["exited"] == 0
    seen = proc.read_stat(daemon)
    assert seen is not None and seen.ppid == agent.reaper
    with Gone(daemon):
        agent.process.kill()


def test_who_ignores_the_request_is_killed(agent: Agent) -> None:
    worker, daemon = agent.daemon("SIG_IGN")
    with Gone(worker, daemon, agent.reaper):
        agent.process.kill()


def test_a_stopped_worker_is_ended_too(agent: Agent) -> None:
    pid = agent.python("import signal; print(1, flush=True); signal.pause()")
    agent.said()
    os.kill(pid, signal.SIGSTOP)
    with Gone(pid, agent.reaper):
        agent.process.kill()


def test_the_agent_may_order_the_end(agent: Agent) -> None:
    worker, daemon = agent.daemon("SIG_IGN")
    with Gone(worker, daemon):
        agent.tell(do="end", grace=0.0)
    told = [agent.hear(), agent.hear()]
    assert told[0]["exited"] == 0
    assert told[1] == {"ended": True}
    assert agent.spawn("/bin/true", worker=1), "and may start others"


LEAVES = """
import subprocess
nowhere = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
own = subprocess.Popen(["sleep", "1000"], start_new_session=True, **nowhere)
holds = subprocess.Popen(["sleep", "1000"], start_new_session=True)
with_it = subprocess.Popen(["sleep", "1000"], **nowhere)
print(own.pid, holds.pid, with_it.pid, flush=True)
"""
"""A worker that ends well, and leaves a process in a session of its own, one there that still has the
worker's streams, and one in the worker's session."""


def test_after_a_good_end_only_what_left_its_session_lives_on(agent: Agent) -> None:
    agent.python(LEAVES)
    assert agent.hear()["code"] == 0
    own, holds, with_it = map(int, agent.said().split())
    try:
        with Gone(holds, with_it):
            agent.tell(do="end", grace=LIMIT, spare=True)
            assert agent.hear() == {"ended": True, "left": [own]}
        with Gone(agent.reaper):
            agent.tell(do="close")
        assert proc.read_stat(own) is not None
    finally:
        os.kill(own, signal.SIGKILL)


CARELESS = """
import os, signal, subprocess, sys
ready, told = os.pipe()
if os.fork():
    os.read(ready, 1)
    os._exit(0)
child = subprocess.Popen(["sleep", "1000"])
os.setsid()
print(os.getpid(), child.pid, flush=True)
for fd, way in ((1, os.O_WRONLY), (2, os.O_WRONLY)):
    os.dup2(os.open(os.devnull, way), fd)
os.write(told, b"x")
signal.pause()
"""
"""A daemon that never asks how its child ended, which is still in the worker's session."""


def test_a_child_that_nobody_asks_for_is_not_waited_for(agent: Agent) -> None:
    agent.python(CARELESS)
    assert agent.hear()["code"] == 0
    daemon, _ = map(int, agent.said().split())
    try:
        agent.tell(do="end", grace=0.0, spare=True)
        assert agent.hear() == {"ended": True, "left": [daemon]}
    finally:
        os.kill(daemon, signal.SIGKILL)


def test_whose_agent_dies_after_others_were_started_leaves_nothing(agent: Agent) -> None:
    agent.python(LEAVES)
    assert agent.hear()["code"] == 0
    own = int(agent.said().split()[0])
    agent.tell(do="end", grace=LIMIT, spare=True)
    agent.hear()
    agent.spawn("/bin/true", worker=1)
    with Gone(own):
        agent.process.kill()


def test_what_was_started_here_is_ended_after_a_good_end_too(agent: Agent) -> None:
    standby = agent.python("import signal; print(1, flush=True); signal.pause()", worker=-1)
    agent.said(-1)
    with Gone(standby):
        agent.tell(do="end", grace=0.0, spare=True)


def test_who_stands_by_for_the_next_round_outlives_the_workers(agent: Agent) -> None:
    standby = agent.python("import signal; print(1, flush=True); signal.pause()", worker=-1)
    agent.said(-1)
    worker = agent.python("import signal; signal.pause()")
    agent.tell(do="end", grace=LIMIT, keep=[standby])
    assert agent.hear()["pid"] == worker
    assert agent.hear() == {"ended": True}
    stat = proc.read_stat(standby)
    assert stat is not None and stat.ppid == agent.reaper
    with Gone(standby):
        agent.tell(do="close")


def test_a_worker_gets_time_to_leave(agent: Agent) -> None:
    agent.python(
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))\n"
        "print(1, flush=True)\nsignal.pause()\n"
    )
    agent.said()
    agent.tell(do="end", grace=LIMIT)
    assert agent.hear()["code"] == 42


def test_should_the_reaper_be_killed_the_workers_go_with_it(agent: Agent) -> None:
    pid = agent.python("import signal; print(1, flush=True); signal.pause()")
    agent.said()
    with Gone(pid):
        os.kill(agent.reaper, signal.SIGKILL)
    assert agent.hear() == {}, "the agent sees the end of its socket"
    assert agent.boxes.is_dir(), "the agent that lives on still reads them"


MANY = """
import os, signal, subprocess, sys
pids = []
for number in range(20):
    ready, told = os.pipe()
    if os.fork() == 0:
        if number % 2:  # a daemon: two forks and a session of its own
            os.setsid()
            if os.fork():
                os._exit(0)
        for each in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN)
        os.write(told, str(os.getpid()).encode())
        while True:
            signal.pause()
    pids.append(int(os.read(ready, 20)))
print(*pids, flush=True)
signal.pause()
"""
"""A worker with twenty children that want to live, ten of them daemons."""


@pytest.mark.parametrize("order", ["agent first", "reaper first"])
def test_agent_and_reaper_killed_at_once_leave_nothing(agent: Agent, order: str) -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as stranger:
        worker = agent.python(MANY)
        children = list(map(int, agent.said().split()))
        assert len(children) == 20
        began = time.monotonic()
        pids = [agent.process.pid, agent.reaper]
        with Gone(worker, *children, agent.guard):
            for pid in pids if order == "agent first" else reversed(pids):
                os.kill(pid, signal.SIGKILL)
        assert time.monotonic() - began < 3.0
        assert not agent.boxes.exists()
        assert stranger.poll() is None


def test_a_guard_that_is_killed_is_not_missed(agent: Agent) -> None:
    worker, daemon = agent.daemon("SIG_IGN")
    os.kill(agent.guard, signal.SIGKILL)
    with Gone(worker, daemon, agent.reaper):
        agent.process.kill()


def test_no_pattern_of_the_agents_command_line_means_the_reaper_or_its_guard(agent: Agent) -> None:
    def title(pid: int) -> str:
        return " ".join(proc.command_line(pid))

    # Each takes its title a moment after the fork.
    wait_until(lambda: title(agent.reaper).startswith("job reaper: ends"), 10.0)
    wait_until(lambda: title(agent.guard).startswith("job guard: ends"), 10.0)
    lines = {pid: title(pid) for pid in (agent.reaper, agent.guard)}
    assert not any("python" in line or "allaboard" in line for line in lines.values())


def test_the_guard_costs_next_to_nothing(agent: Agent) -> None:
    rollup = Path(f"/proc/{agent.guard}/smaps_rollup").read_text()
    own_kib = sum(
        int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private")
    )
    assert 0 < own_kib < 10_000


# -- signals ----------------------------------------------------------------------------------------


def test_a_signal_reaches_one_process_or_its_group(agent: Agent) -> None:
    # The trap is set before the child's number says that the shell is there.
    code = "trap 'echo got' USR1; sleep 1000 & echo $!; while :; do wait; done"
    pid = agent.spawn("/bin/bash", "-c", code)
    child = int(agent.said())
    agent.tell(do="signal", pid=pid, signal=int(signal.SIGUSR1), group=False)
    until_said(agent, f"{child}\ngot\n")
    assert proc.read_stat(child) is not None
    with Gone(child):
        agent.tell(do="signal", pid=pid, signal=int(signal.SIGTERM), group=True)
    assert agent.hear()["signal"] == signal.SIGTERM


def test_a_signal_goes_only_to_what_was_started_here(agent: Agent) -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as stranger:
        agent.tell(do="signal", pid=stranger.pid, signal=int(signal.SIGKILL), group=False)
        agent.spawn("/bin/true")  # by its answer the order before it has been read
        assert stranger.poll() is None


@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]
)
def test_the_reaper_itself_ignores_the_terminal(agent: Agent, number: int) -> None:
    agent.spawn("/bin/true")  # it is up
    agent.hear()
    assert os.getpgid(agent.reaper) == agent.reaper
    os.kill(agent.reaper, number)
    assert agent.spawn("/bin/true")


def until_said(agent: Agent, text: str) -> None:
    until = time.monotonic() + LIMIT
    while agent.said() != text:
        assert time.monotonic() < until, agent.said()


# -- an agent without standard streams --------------------------------------------------------------


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_lead_nowhere(tmp_path: Path, closed: str) -> None:
    """As under some service managers: else a worker's pipe would become the agent's own output."""
    code = (
        "import os, sys\nfrom allaboard.launch import reaper\nreaper.open_standard_streams()\n"
        "print('said'); sys.stdout.flush()\n"
        "told = [os.readlink(f'/proc/self/fd/{n}') for n in range(3)]\n"
        "open(sys.argv[1], 'w').write(' '.join(told) + f' {min(os.pipe())}')\n"
    )
    answer = tmp_path / "answer"
    command = ["/bin/sh", "-c", f'exec "$0" "$@" {closed}', sys.executable, "-c", code, str(answer)]
    subprocess.run(command, capture_output=True, check=True, stdin=subprocess.PIPE)
    told = answer.read_text().split()
    for number, sign in enumerate(("<&-", " >&-", "2>&-")):
        assert (told[number] == "/dev/null") == (sign in f" {closed}")
    assert int(told[3]) > 2
