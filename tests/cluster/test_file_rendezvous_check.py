"""The file of a file:// rendezvous, as the members of one host find it at their door."""

from __future__ import annotations

import asyncio
import os
import struct
import time
from pathlib import Path

import pytest

from allaboard.blackbox.snapshot import BoxReading
from allaboard.cluster.file_rendezvous_check import FileRendezvousCheck
from allaboard.facts import Phase
from allaboard.facts.samples import sample_declaration
from allaboard.protocol.events import Event, MemberFactsReported, ProcessSampled


def seen(path: Path, phase: Phase = Phase.ARRIVED, round_: int = 1) -> ProcessSampled:
    told = sample_declaration(0, 2, place=f"file://{path}")
    box = BoxReading(phase=int(phase), phase_since=1.0, round=round_, declared=told)
    return ProcessSampled(pid=100, worker=0, sampled_at=1.0, state="S", cpu=0.0, box=box)


def store(path: Path, clients: int, age: float) -> Path:
    """As a FileStore writes it: sizes in front of key and value."""
    parts = (b"refcount/", str(clients).encode())
    path.write_bytes(b"".join(struct.pack("=I", len(p)) + p for p in parts))
    os.utime(path, (time.time() - age,) * 2)
    return path


def shown(event: ProcessSampled) -> list[Event]:
    """What the job is shown of a member that stands there, once the disk has answered."""

    async def ask() -> list[Event]:
        news = asyncio.Event()
        looks = FileRendezvousCheck(time.monotonic() - 60.0, news.set)
        first = looks.hold_unchecked([event])
        if first:
            return first
        await news.wait()
        return looks.hold_unchecked([event])

    return asyncio.run(ask())


def test_a_file_from_before_the_job_is_told_of(tmp_path: Path) -> None:
    event = seen(store(tmp_path / "meeting", 4, age=3600.0))
    told, answer = shown(event)
    assert told is event and isinstance(answer, MemberFactsReported)
    assert answer.facts["rendezvous joined"] == "4"


@pytest.mark.parametrize("clients", [0, 2])
def test_a_file_that_this_job_made_is_not(tmp_path: Path, clients: int) -> None:
    event = seen(store(tmp_path / "meeting", clients, age=20.0))
    assert shown(event) == [event]


def test_nor_an_empty_one_or_none(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    os.utime(tmp_path / "empty", (0.0, 0.0))
    for name in ("empty", "none"):
        event = seen(tmp_path / name)
        assert shown(event) == [event]


@pytest.mark.parametrize(("clients", "told"), [(0, "0"), (1, "-1"), (2, "-1")])
def test_at_a_later_init_one_that_all_have_left_is(tmp_path: Path, clients: int, told: str) -> None:
    """torch removes it, unless the last two leave at the same moment."""
    event = seen(store(tmp_path / "meeting", clients, age=0.0), round_=2)
    _, answer = shown(event)
    assert isinstance(answer, MemberFactsReported) and answer.facts["rendezvous joined"] == told


def test_only_a_member_that_is_held(tmp_path: Path) -> None:
    event = seen(store(tmp_path / "meeting", 4, age=3600.0), Phase.JOINING)
    assert shown(event) == [event]
