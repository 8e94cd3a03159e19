"""How much it matters that a thread ended by an exception, in a worker that ended with exit code 0."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from allaboard.analysis.stalls.dead_threads import (
    THREAD_CALLED_NOTE,
    THREAD_ENDED_NOTE,
    THREAD_RAISED_NOTE,
    ended_thread,
)
from allaboard.facts import Claim, Severity
from allaboard.facts.samples import ended_member, sample_job, sample_member
from allaboard.probe import member as probe
from allaboard.probe.blackbox import Box
from allaboard.rules.engine.catalogue import load_catalogue

RULE = next(e.rule for e in load_catalogue().entries if e.code == "EXIT011")


def claim(did: str, step: int) -> Claim:
    notes = {
        THREAD_RAISED_NOTE: "KeyError: 'x' at /home/u/a.py:3 in f",
        THREAD_CALLED_NOTE: "",
        THREAD_ENDED_NOTE: f"{step} {did} t 1",
    }
    (one,) = RULE.check(sample_job(ended_member(1, code=0, member={"notes": notes}), ended=True))
    return one


@pytest.mark.parametrize(
    ("did", "step", "severity"),
    [
        ("steps", 40, Severity.WARNING),
        ("calls", 40, Severity.WARNING),
        ("nothing", 40, Severity.INFO),
        ("steps", 39, Severity.INFO),  # somebody started it again
    ],
)
def test_a_thread_that_trained_matters(did: str, step: int, severity: Severity) -> None:
    said = claim(did, step)
    assert said.severity is severity
    assert said.summary.startswith("thread t 1 of worker 1 raised KeyError at a.py:3 in f")


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    kept = probe.here.box
    probe.here.box = Box(str(tmp_path / f"{probe.os.getpid()}.box"))
    yield probe.here.box
    probe.here.box, probe.here.stepping, probe.here.thread_end_rank = kept, None, 0
    probe.here.notes.clear()


def run(name: str, raises: Exception, steps: int) -> None:
    def work() -> None:
        for _ in range(steps):
            probe.step()
        try:
            raise raises
        except Exception as error:
            probe.thread_raised(type(error), error, error.__traceback__, threading.current_thread())

    thread = threading.Thread(target=work, name=name)
    thread.start()
    thread.join()


def test_what_ended_the_trainer_stays(box: Box) -> None:
    run("trainer", KeyError("label"), steps=3)
    run("uploader", OSError("no route"), steps=0)
    found = ended_thread(sample_member(1, notes=probe.here.notes))
    assert found is not None
    assert (found.name, found.took_part_in, found.step) == ("trainer", "steps", 3)
    assert found.error == ("KeyError", "'label'")


def test_what_gloo_says_is_told_without_the_path_of_its_source(box: Box) -> None:
    long = "[/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer"
    run("trainer", RuntimeError(long), steps=1)
    found = ended_thread(sample_member(1, notes=probe.here.notes))
    assert found is not None and found.error == ("RuntimeError", "Connection closed by peer")
