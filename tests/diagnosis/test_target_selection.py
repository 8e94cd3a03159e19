"""From whatever pid a person has to the ranks of the job: wrappers, launchers, one rank, other users."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from allaboard.diagnosis.live import job_list
from allaboard.diagnosis.live.target_selection import NoSuchProcessError, choose_processes
from free_ports import free_port

RANK = """import os, socket, sys, time
rank, port = int(os.environ["RANK"]), int(os.environ["MASTER_PORT"])
if rank == 0:
    door = socket.create_server(("127.0.0.1", port))
    open(sys.argv[1] + ".0", "w").close()
    kept = [door.accept() for _ in range(int(os.environ["WORLD_SIZE"]) - 1)]
else:
    while True:
        try:
            stream = socket.create_connection(("127.0.0.1", port))
            break
        except OSError:
            time.sleep(0.05)
    open(sys.argv[1] + f".{rank}", "w").close()
time.sleep(600)
"""
LOOP = "for r in 0 1; do RANK=$r {before} {python} rank_of_wrapper.py up & done; wait"
Begin = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    (tmp_path / "rank_of_wrapper.py").write_text(RANK)
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str, ranks: int = 2, **more: str) -> subprocess.Popen[bytes]:
        port = str(free_port())
        variables = {
            "WORLD_SIZE": str(ranks),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
            **more,
        }
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env={"PATH": os.environ["PATH"], **variables},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
        )
        started.append(process)
        deadline = time.monotonic() + 30
        while not all((tmp_path / f"up.{r}").exists() for r in range(ranks)):
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.02)
        for r in range(ranks):
            (tmp_path / f"up.{r}").unlink()
        return process

    yield start
    for process in started:
        for pid in _session(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def _session(leader: int) -> list[int]:
    """The processes of the session, which timeout(1) gives groups of their own."""
    members = []
    for name in (p.name for p in Path("/proc").iterdir() if p.name.isdecimal()):
        try:
            if os.getsid(int(name)) == leader:
                members.append(int(name))
        except OSError:
            continue
    return members


def ranks_of(pids: list[int]) -> list[str]:
    environments = [Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") for pid in pids]
    return sorted(v.decode() for e in environments for v in e if v.startswith(b"RANK="))


@pytest.mark.parametrize("before", ["", "timeout 600", "nohup", "env A=1", "nice timeout 600"])
def test_a_shells_pid_leads_to_the_ranks_below_it(begin: Begin, before: str) -> None:
    shell = begin("bash", "-c", LOOP.format(before=before, python=sys.executable))
    selection = choose_processes([str(shell.pid)])
    assert ranks_of(selection.pids) == ["RANK=0", "RANK=1"] and not selection.siblings


def test_a_wrapper_of_one_rank_leads_to_all_ranks(begin: Begin) -> None:
    shell = begin("bash", "-c", LOOP.format(before="timeout 600", python=sys.executable))
    wrapper = next(p for p in _session(shell.pid) if _program(p) == "timeout")
    selection = choose_processes([str(wrapper)])
    assert ranks_of(selection.pids) == ["RANK=0", "RANK=1"] and len(selection.siblings) == 1


def _program(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def test_one_rank_leads_to_its_siblings_and_to_no_other_job(begin: Begin) -> None:
    jobs = [begin("bash", "-c", LOOP.format(before="", python=sys.executable)) for _ in range(2)]
    first, second = (choose_processes([str(job.pid)]).pids for job in jobs)
    assert not set(first) & set(second)
    one = choose_processes([str(first[1])])
    assert sorted(one.pids) == sorted(first) and one.siblings == [first[0]]


def test_a_launcher_written_in_python_leads_to_its_ranks(begin: Begin) -> None:
    code = (
        "import os, subprocess, sys\n"
        "for r in range(2):\n"
        "    variables = {**os.environ, 'RANK': str(r)}\n"
        "    p = subprocess.Popen([sys.executable, 'rank_of_wrapper.py', 'up'], env=variables)\n"
        "p.wait()"
    )
    launcher = begin(sys.executable, "-c", code)
    assert ranks_of(choose_processes([str(launcher.pid)]).pids) == ["RANK=0", "RANK=1"]


@contextmanager
def posing_as(client: str, *arguments: str) -> Iterator[int]:
    """A process with a client's command line: what runs in it only has to live."""
    command = shlex.join(["tail", "-f", "/dev/null", *arguments])
    with subprocess.Popen(
        ["bash", "-c", f"exec -a {client} {command}"], stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 10
        while _program(process.pid) != "tail":
            assert time.monotonic() < deadline
        try:
            yield process.pid
        finally:
            process.kill()


def test_a_client_leads_to_what_its_server_started(begin: Begin) -> None:
    # A word of its own: another test may run the same script at the same time.
    own_word = f"of-{os.getpid()}"
    shell = begin(
        "bash",
        "-c",
        LOOP.replace(" up", f" up {own_word}").format(before="", python=sys.executable),
    )
    with posing_as("srun", sys.executable, "rank_of_wrapper.py", "up", own_word) as client:
        pids = choose_processes([str(client)]).pids
    assert sorted(pids) == sorted(choose_processes([str(shell.pid)]).pids)


def test_a_client_of_something_elsewhere_is_said_to_be_one() -> None:
    with (
        posing_as("docker", "exec", "web", "python", "x.py") as client,
        pytest.raises(NoSuchProcessError, match=r"is only the client: .* docker top CONTAINER"),
    ):
        choose_processes([str(client)])


def _as_nobody(answer: Callable[[], str]) -> str:
    """The answer of a child of this process that has given up its rights."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            os.write(writing, answer().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text


def _answers(pid: int) -> str:
    try:
        choose_processes([str(pid)])
    except NoSuchProcessError as error:
        listed = job_list.list_jobs()
        unreadable = job_list.describe_unreadable([p for p in listed.unreadable if p.pid == pid])
        return "\n".join([str(error), *unreadable])
    return "it was read"


@pytest.mark.skipif(os.getuid() != 0, reason="becomes another user")
def test_another_users_process_is_said_to_be_theirs(begin: Begin) -> None:
    shell = begin("bash", "-c", LOOP.format(before="", python=sys.executable))
    pid = choose_processes([str(shell.pid)]).pids[0]
    alone, *listed = _as_nobody(lambda: _answers(pid)).splitlines()
    assert f"process {pid}" in alone and "belongs to root" in alone
    assert alone.endswith(f"-m allaboard diagnose {pid}") and " sudo " in alone
    assert listed[0].startswith("Python processes of root cannot be read by ")
    assert listed[0].endswith(f": {pid} (rank_of_wrapper.py)")
    assert listed[1].strip().startswith("sudo ") and len(listed) == 2


def test_the_jobs_of_this_host_are_listed_with_a_pid_of_each(begin: Begin) -> None:
    jobs = [begin("bash", "-c", LOOP.format(before="", python=sys.executable)) for _ in range(2)]
    expected = [sorted(choose_processes([str(job.pid)]).pids) for job in jobs]
    listed = job_list.list_jobs()
    assert all(sorted(pids) in [sorted(j.pids) for j in listed.jobs] for pids in expected)
    text = job_list.describe_choice(listed)
    assert text.count("rank_of_wrapper.py: 2 processes (ranks 0-1)") >= 2
    assert f"allaboard diagnose {expected[0][0]}\n" in text


def test_an_empty_host_is_told_what_to_give() -> None:
    text = job_list.describe_choice(job_list.JobList((), ()))
    assert text.startswith(
        "no training process runs on this host that can be read; give PIDs, logs"
    )
