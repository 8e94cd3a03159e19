"""Horovod's stall inspector, from its documents and source: recorded nowhere here."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.rules.engine.catalogue import load_catalogue

LINES = (
    "[2026-01-02 03:04:05.123456: W horovod/common/stall_inspector.cc:107] One or more tensors were "
    "submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for remainder "
    "of ranks for more than 60 seconds. ",
    "Missing ranks:",
    "1: [allreduce.a, allreduce.b]",
    "3: [allreduce.a, ...]",
)


@pytest.mark.parametrize("prefix", ["", "[1,0]<stderr>:", "[0]<stderr>:"])
@pytest.mark.parametrize("word", ["Missing", "Stalled"])
def test_every_rank_of_the_list_is_named(prefix: str, word: str, tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("".join(f"{prefix}{line}\n" for line in LINES).replace("Missing", word))
    (found,) = diagnose_paths([log], load_catalogue()).findings
    assert (found.rule, [w.rank for w in found.who]) == ("LOG001", [1, 3])
    assert found.summary == "ranks 1 and 3 did not submit allreduce.a, which the others wait for"


STALLED = "Stalled ops: a.weight [ready ranks: {0}], b.weight [ready ranks: {1}]\n"


def test_ranks_that_wait_for_each_other_are_told_as_that(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(STALLED.format("3", "2, 0, 1"))
    (found,) = diagnose_paths([log], load_catalogue()).findings
    assert (found.rule, [w.rank for w in found.who]) == ("LOG003", [3])
    assert "rank 3 submitted a.weight and ranks 0-2 submitted b.weight" in found.summary


def test_ranks_that_are_late_with_several_tensors_are_not(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text(STALLED.format("0, 1", "0, 1, 3"))
    (found,) = diagnose_paths([log], load_catalogue()).findings
    assert found.rule == "LOG001"
