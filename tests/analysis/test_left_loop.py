"""Loops of the program that one member has left and others are still in."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from allaboard.analysis.collectives.left_loop import left_loop_clause
from allaboard.facts import Frame, Member, Stack
from allaboard.facts.samples import sample_member
from allaboard.sampling.enclosing_loops import enclosing_loops
from allaboard.sampling.source_lines import with_source

PROGRAM = """\
def average(model):
    for p in model.parameters():
        all_reduce(p)
def epoch(loader):
    for x, y in loader:
        for part in x:
            average(part)
    return 1
def main():
    barrier()
    for number in range(3):
        epoch(loader)
        barrier()
        while not saved(): save()
    barrier()
main()
"""
LOOP_5 = "the loop at train.py:5 (for x, y in loader)"
INNER = "the loops at train.py:5 (for x, y in loader), train.py:6 (for part in x)"


def member_at(path: Path, rank: int, *places: tuple[int, str]) -> Member:
    """A member at these lines of the program, the innermost first."""
    frames = tuple(Frame(str(path), line, function) for line, function in places)
    stack = Stack(frames=frames, taken_at=99.0, loops=enclosing_loops(frames))
    return sample_member(rank, stack=stack)


MODULE = (16, "<module>")
IN_STEP = ((3, "average"), (7, "epoch"), (12, "main"), MODULE)


@pytest.mark.parametrize(
    ("ahead", "behind", "left"),
    [
        (((13, "main"), MODULE), IN_STEP, INNER),
        (((8, "epoch"), (12, "main"), MODULE), IN_STEP, INNER),
        (((15, "main"), MODULE), IN_STEP, "the loop at train.py:11 (for number in range(3))"),
        (((10, "main"), MODULE), IN_STEP, ""),
        (((12, "main"), MODULE), ((13, "main"), MODULE), ""),
        (((13, "main"), MODULE), ((12, "main"), MODULE), ""),
        (((15, "main"), MODULE), ((10, "main"), MODULE), ""),
        (IN_STEP, IN_STEP, ""),
        (((1, "other"),), IN_STEP, ""),
    ],
)  # fmt: skip
def test_a_loop_that_one_member_is_past_and_another_one_is_in(
    tmp_path: Path,
    ahead: tuple[tuple[int, str], ...],
    behind: tuple[tuple[int, str], ...],
    left: str,
) -> None:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    clause = left_loop_clause(
        (member_at(path, 1, *ahead),), (member_at(path, 0, *behind), member_at(path, 2, *behind))
    )
    assert clause == (f"rank 1 has left {left}, which rank 0 is still in" if left else "")


@pytest.mark.parametrize(
    ("ahead", "where"),
    [
        (((14, "main"), MODULE), "the loop at train.py:14 (while not saved(): save())"),
        (((3, "average"), (13, "main"), MODULE), "the loop at train.py:2 (for p in model.parameters())"),
    ],
)  # fmt: skip
def test_of_two_loops_that_an_outer_one_repeats_either_may_have_been_left(
    tmp_path: Path, ahead: tuple[tuple[int, str], ...], where: str
) -> None:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    members = (member_at(path, 0, *IN_STEP), member_at(path, 1, *ahead))
    assert left_loop_clause(members[1:], members) == (
        f"rank 1 is in {where}, and rank 0 in {INNER}: one side has left its loop before the other"
    )
    # Without an outer loop it is certain which one.
    first = member_at(path, 0, (13, "main"))
    assert left_loop_clause((member_at(path, 1, (15, "main")),), (first,)).startswith(
        "rank 1 has left"
    )


BRANCHES = """\
def evaluate():
    if rank != 0:
        return
    for x in data: all_reduce(x)
def main():
    if rank == 0:
        for x in data: recv(x)
        barrier()
    else:
        for x in data: send(x)
    evaluate()
    barrier()
if __name__ == "__main__":
    main()
    for x in data: all_reduce(x)
    barrier()
"""


@pytest.mark.parametrize(
    ("ahead", "behind", "left"),
    [
        (((10, "main"),), ((7, "main"),), ""),
        (((12, "main"),), ((7, "main"),), ""),
        (((8, "main"),), ((7, "main"),), "the loop at train.py:7 (for x in data: recv(x))"),
        (((12, "main"),), ((4, "evaluate"), (11, "main")), ""),
        (((16, "<module>"),), ((15, "<module>"),), "the loop at train.py:15 (for x in data: all_reduce(x))"),
    ],
)  # fmt: skip
def test_a_loop_in_another_branch_was_not_left(
    tmp_path: Path,
    ahead: tuple[tuple[int, str], ...],
    behind: tuple[tuple[int, str], ...],
    left: str,
) -> None:
    path = tmp_path / "train.py"
    path.write_text(BRANCHES)
    clause = left_loop_clause((member_at(path, 1, *ahead),), (member_at(path, 0, *behind),))
    assert clause == (f"rank 1 has left {left}, which rank 0 is still in" if left else "")


def test_files_that_are_no_python_or_are_not_there_have_no_loops(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("for x in :\n    pass\n")
    assert enclosing_loops((Frame(str(path), 2, "<module>"),)) == ()
    assert (
        enclosing_loops((Frame(str(tmp_path / "gone.py"), 2, "main"), Frame("<string>", 1, "f")))
        == ()
    )


def test_a_function_made_in_a_loop_is_not_in_that_loop(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(
        "for n in names:\n    def save():\n        barrier()\n"
        "    calls.append(lambda: barrier())\nsave()\ncalls[0]()\n"
    )
    assert enclosing_loops((Frame(str(path), 3, "save"), Frame(str(path), 5, "<module>"))) == ()
    assert enclosing_loops((Frame(str(path), 4, "<lambda>"), Frame(str(path), 6, "<module>"))) == ()
    (loop,) = enclosing_loops((Frame(str(path), 4, "<module>"),))
    assert (loop.head.text, loop.last_line) == ("for n in names:", 4)


@pytest.mark.parametrize("data", [b"# coding: none\n", b"x = '\xff'\n", b"\0", b"#" * 600_000])
def test_files_that_cannot_be_read_have_no_loops(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(data)
    assert enclosing_loops((Frame(str(path), 1, "<module>"),)) == ()


def test_a_program_that_came_through_a_pipe_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "stdin"
    os.mkfifo(pipe)
    frames = (Frame(str(pipe), 2, "<module>"),)
    assert enclosing_loops(frames) == ()
    assert with_source(frames)[0].text == ""


def test_members_without_a_stack_have_left_no_loop(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM)
    stands = member_at(path, 0, *IN_STEP)
    assert left_loop_clause((msgspec.structs.replace(stands, stack=None),), (stands,)) == ""
