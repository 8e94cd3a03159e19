"""A real follower and whoever answers in its leader's place: training starts when the leader has come, and
runs to its end; nothing else on the host is touched, and what was said is shown as somebody's word."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from certificates import authority, signed
from free_ports import free_port
from host_runs import HostRun
from rogue_leader import BAIT, OPENING, REFUSALS, ROWS, RogueLeader, Row

MAX_MEMORY_KB, MAX_CPU_S = 150_000, 20.0
"""Of an agent that follows; without a rogue 45 MB and 1 s."""
MAX_SCANNED = 20


class Protection(NamedTuple):
    """What the hosts of a job share, and what the rogue has of its own."""

    options: Callable[[Path], tuple[str, ...]]
    """Options of ``allaboard run``, made in this folder."""
    rogue: Callable[[Path], dict[str, object]]
    """Arguments of the rogue."""


def secret_options(folder: Path) -> tuple[str, ...]:
    (folder / "secret").write_text("known to both hosts\n")
    (folder / "secret").chmod(0o600)
    return ("--secret-file", str(folder / "secret"))


def tls_options(folder: Path) -> tuple[str, ...]:
    files = signed(folder, "host", authority(folder, "ca"))
    files.key.chmod(0o600)
    return ("--tls-cert", str(files.cert), "--tls-key", str(files.key), "--tls-ca", str(files.ca))


PROTECTIONS = {
    "nothing": Protection(lambda folder: (), lambda folder: {}),
    "secret": Protection(secret_options, lambda folder: {"sealed": True}),
    "TLS": Protection(
        tls_options, lambda folder: {"tls": signed(folder, "evil", authority(folder, "evil-ca"))}
    ),
}


@pytest.fixture
def bystander() -> Iterator[int]:
    """A Python program of this host that belongs to no job."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process.pid
        assert process.poll() is None, "the bystander was ended"
        process.kill()


def burden(pid: int) -> tuple[int, float]:
    """Largest memory of a process so far (kB), and its CPU time (s)."""
    status = Path(f"/proc/{pid}/status").read_text()
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(peak), (int(fields[11]) + int(fields[12])) / 100


def untrue(rogue: RogueLeader, text: str, is_believed: bool) -> list[str]:
    """Return what the rogue has achieved although it must not."""
    wrong = []
    if rogue.ears.stacks - set(rogue.ears.pids):
        wrong.append("it has seen the stack of another process")
    if len(rogue.ears.scanned) > (MAX_SCANNED if is_believed else 0):
        wrong.append(f"{len(rogue.ears.scanned)} ports were connected to because it said so")
    if BAIT in text:
        wrong.append("its command is advised")
    if "\x1b" in text or "\u202e" in text or "\x07" in text:
        wrong.append("it drives the terminal")
    if re.search(r"(?m)^allaboard: FORGED", text):
        wrong.append("it has forged a line")
    if "Traceback" in text or "internal error" in text:
        wrong.append("an error of allaboard's own")
    lines = text.splitlines()
    spoken = [n for n, line in enumerate(lines) if "rogue word" in line]
    if not is_believed and spoken:
        wrong.append(f"it is heard: {lines[spoken[0]]}")
    # A finding says it in the line of its evidence.
    marked = ("".join(lines[n : n + 2]) for n in spoken)
    wrong += [f"not marked as its word: {text}" for text in marked if "unproved" not in text][:1]
    return wrong


async def survives(
    folder: Path, bystander: int, protection: Protection, rows: Sequence[Row], **more: object
) -> tuple[list[str], str]:
    """Have a follower hear all rows before the leader comes; return what went wrong, and what it printed."""
    port, options = free_port(), protection.options(folder)
    arguments = protection.rogue(folder) | more
    is_believed = not arguments.get("sealed") and not arguments.get("tls")
    async with RogueLeader(port, rows, **arguments) as rogue:  # type: ignore[arg-type]
        rogue.ears.bystander = bystander
        follower = HostRun(folder, 1, 2, port, options)
        wrong = []
        try:
            await rogue.until_all_is_said()
            memory, cpu_s = burden(follower.process.pid)
            if memory > MAX_MEMORY_KB or cpu_s > MAX_CPU_S:
                wrong.append(f"{memory} kB and {cpu_s} s of CPU")
        except TimeoutError:
            wrong.append(f"only {rogue.said} of {len(rows)} rows were heard")
        rogue.close_port()
        leader = HostRun(folder, 0, 2, port, options)
        codes = [await asyncio.to_thread(run.wait, 60.0) for run in (leader, follower)]
    if codes != [0, 0]:
        wrong.append(f"exit codes {codes}")
    if not (leader.done.exists() and follower.done.exists()):
        wrong.append("the training did not come to its end")
    wrong += untrue(rogue, follower.text + leader.text, is_believed)
    wrong += [f"left behind: {what}" for what in follower.left_behind()]
    return wrong, follower.text[-6000:]


@pytest.mark.parametrize("name", PROTECTIONS)
def test_the_training_runs_whatever_was_said_before(
    name: str, tmp_path: Path, bystander: int
) -> None:
    rows = list(ROWS.values())
    wrong, text = asyncio.run(survives(tmp_path, bystander, PROTECTIONS[name], rows))
    assert wrong == [], text


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", PROTECTIONS)
def test_the_training_runs_whatever_was_said(
    name: str, row: str, tmp_path: Path, bystander: int
) -> None:
    rows = [ROWS[row]] * 2  # for TLS: with it, and without
    wrong, text = asyncio.run(survives(tmp_path, bystander, PROTECTIONS[name], rows))
    assert wrong == [], text


@pytest.mark.parametrize("name", ["nothing", "secret"])
def test_the_training_runs_although_one_refused_it(
    name: str, tmp_path: Path, bystander: int
) -> None:
    rows = [lambda ears: b""] * len(REFUSALS)
    wrong, text = asyncio.run(survives(tmp_path, bystander, PROTECTIONS[name], rows, refuses=True))
    assert wrong == [], text


async def trains_with(folder: Path, bystander: int) -> tuple[list[str], str]:
    """Have the rogue open the gate and go on, while a host without allaboard is rank 0."""
    port, rows = free_port(), [*OPENING.values(), *ROWS.values()]
    async with RogueLeader(port, rows, stays=True) as rogue:
        rogue.ears.bystander = bystander
        follower = HostRun(folder, 1, 2, port)
        await rogue.until_all_is_said()
        rogue.close_port()
        first = HostRun(folder, 0, 2, port, None)
        codes = [await asyncio.to_thread(run.wait, 60.0) for run in (first, follower)]
    wrong = [f"exit codes {codes}"] if codes != [0, 0] else []
    wrong += [] if "rogue word" in follower.text else ["nothing that it said was heard"]
    wrong += untrue(rogue, follower.text, is_believed=True)
    return wrong + [f"left behind: {what}" for what in follower.left_behind()], follower.text


def test_who_has_started_the_training_ends_nothing(tmp_path: Path, bystander: int) -> None:
    wrong, text = asyncio.run(trains_with(tmp_path, bystander))
    assert wrong == [], text[-6000:]
