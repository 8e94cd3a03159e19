"""Findings as lines: the same parts in the same order, wrapped at words."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from allaboard.facts import Certainty, Evidence, Finding, Place, Severity, Stage, Who
from allaboard.report.finding_text import finding_lines, finding_title
from allaboard.report.plain_text import clean, output_width, wrap_clauses, wrap_words

FINDING = Finding(
    rule="HANG001",
    name="stopped",
    severity=Severity.WARNING,
    certainty=Certainty.LIKELY,
    stage=Stage.RUNTIME,
    who=(Who(index=1, rank=1, pid=4),),
    summary="worker 1 is stopped",
    evidence=(Evidence("state T", "/proc/4/stat"), Evidence("for 12 s")),
    fix="kill -CONT 4",
    where=Place(file="train.py", line=3),
)


def test_four_parts_in_order() -> None:
    assert finding_lines(FINDING) == [
        "warning HANG001 stopped: worker 1 is stopped (likely) · worker 1 (rank 1, pid 4)",
        "  why  state T [/proc/4/stat]; for 12 s",
        "  do   kill -CONT 4",
    ]


def test_a_linter_puts_the_place_in_front() -> None:
    assert finding_lines(FINDING, location=True)[0].startswith("train.py:3: warning HANG001 ")


def test_the_severity_is_a_word_with_and_without_colour() -> None:
    coloured = finding_lines(FINDING, colour=True)
    assert coloured[0].startswith("\x1b[1;33mwarning HANG001 stopped\x1b[0m: worker 1")
    assert coloured[1:] == finding_lines(FINDING)[1:]


def test_nothing_is_invented_where_a_part_is_empty() -> None:
    bare = msgspec.structs.replace(
        FINDING, evidence=(), fix="", who=(), certainty=Certainty.CERTAIN
    )
    assert finding_lines(bare) == ["warning HANG001 stopped: worker 1 is stopped"]


def test_a_resolved_finding_says_since_when() -> None:
    resolved = msgspec.structs.replace(FINDING, over="2026-01-01T15:28:26.000Z")
    assert finding_lines(resolved) == [
        "resolved HANG001 stopped, true until 15:28:26 UTC: worker 1 is stopped"
    ]
    assert finding_title(resolved) == "HANG001 stopped (worker 1, resolved)"


def test_verbose_shows_all_evidence_on_lines_of_their_own_and_all_members() -> None:
    several = msgspec.structs.replace(
        FINDING,
        evidence=tuple(Evidence(f"e{n}") for n in range(5)),
        who=tuple(Who(index=n, rank=n) for n in range(2)),
    )
    assert finding_lines(several)[1] == "  why  e0; e1; e2"
    assert "worker 1 (rank 1)" not in finding_lines(several)[0]
    verbose = finding_lines(several, verbose=True)
    assert verbose[0].endswith("· worker 0 (rank 0), worker 1 (rank 1)")
    assert verbose[1:6] == ["  why  e0", *(f"       e{n}" for n in range(1, 5))]


def test_text_to_paste_is_shown_whole_and_unwrapped_on_demand() -> None:
    manifest = msgspec.structs.replace(FINDING, fix="add this:\nname:   " + "x " * 80)
    assert finding_lines(manifest)[2:] == ["  do   add this:"]
    assert finding_lines(manifest, paste=True)[3].startswith("       name:   x x")
    assert len(finding_lines(manifest, paste=True)) == 4


WORDS = st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Z", "C"]), min_size=1))


@given(WORDS, st.integers(20, 120))
def test_lines_are_wrapped_at_words_only(words: list[str], width: int) -> None:
    text = " ".join(words)
    for wrap in (wrap_words, wrap_clauses):
        lines = wrap(text, width, "  do   ", "       ")
        assert " ".join(" ".join(lines).split()) == " ".join(["do", *words])
        for line in lines:
            assert len(line) <= width or len(line.split()) <= 2


def test_a_command_is_moved_to_the_next_line_rather_than_torn() -> None:
    fix = (
        "on h2: ping -c1 10.77.0.1; nc -vz -w3 10.77.0.1 29500   # then open the port between both"
    )
    assert wrap_clauses(fix, 55, "  do   ", "       ") == [
        "  do   on h2: ping -c1 10.77.0.1;",
        "       nc -vz -w3 10.77.0.1 29500",
        "       # then open the port between both",
    ]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.delenv("COLUMNS", raising=False)
    leader, follower = pty.openpty()
    os.set_blocking(leader, False)
    yield follower
    os.close(leader)
    os.close(follower)


def test_the_width_is_that_of_the_terminal_else_100(
    terminal: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 132, 0, 0))
    assert output_width(terminal) == 132
    reading, writing = os.pipe()
    assert output_width(writing) == 100
    monkeypatch.setenv("COLUMNS", "60")
    assert output_width(writing) == output_width(terminal) == 60
    os.close(reading)
    os.close(writing)


def test_no_text_drives_a_terminal() -> None:
    assert clean("a\nb\tc") == "a b c"
    assert clean("\x1b[2J\u202e\udc80é") == "\\x1b[2J\\u202e\\udc80é"
