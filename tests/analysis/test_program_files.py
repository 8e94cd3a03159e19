"""Members of one job that run different scripts."""

from __future__ import annotations

from allaboard.analysis.stacks.program_files import program_advice, program_evidence
from allaboard.facts import Frame, Member
from allaboard.facts.samples import REDUCE, sample_member, sample_stack

STARTS = Frame("/usr/lib/python3.11/runpy.py", 86, "_run_code")


def member(rank: int, script: str, function: str = "<module>") -> Member:
    own = Frame(f"/home/u/{script}", 60, function)
    return sample_member(rank, stack=sample_stack(REDUCE, own, STARTS))


def test_who_runs_another_script_is_told() -> None:
    members = [member(0, "train.py"), member(1, "evaluate.py"), member(2, "train.py")]
    (evidence,) = program_evidence(members)
    assert evidence.observed == "rank 1 runs evaluate.py, ranks 0 and 2 run train.py"
    assert "evaluate.py and train.py" in program_advice(members)


def test_one_script_and_frames_that_do_not_show_it_are_no_difference() -> None:
    for members in (
        [member(0, "train.py"), member(1, "train.py")],
        [member(0, "train.py"), member(1, "evaluate.py", function="work")],
        [member(0, "train.py"), sample_member(1, stack=None)],
    ):
        assert program_evidence(members) == () and program_advice(members) == ""
