"""What MindSpore, Neuron and trackers of boosted trees write, and marks around what was pasted."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.rules.engine.catalogue import load_catalogue
from diagnosed_texts import errors

NODES = (
    "[ERROR] ME(1620:2814,MainProcess):2025-03-10-09:40:38.722.000 [mindspore/parallel/cluster/"
    "process_entity/_api.py:431] Time out nodes are ['3', '5']"
)


def test_nodes_of_mindspore_that_fell_silent_are_named(tmp_path: Path) -> None:
    (finding,) = errors(tmp_path, NODES)
    assert finding.rule == "LOG002" and "of the nodes ['3', '5'] any more" in finding.summary
    (finding,) = errors(tmp_path, NODES.replace("['3', '5']", "[]"))
    assert finding.rule == "LOG012"


NEURON = (
    "2024-May-21 16:18:20.0221 58091:587 [0] include/socket.h:541 CCOM WARN Timeout waiting for RX (waited "
    "{1} sec) - retrying, [bootstrapInit, rank: {0}/8/-1]"
)


def test_ranks_of_neuron_that_wait_as_the_log_ends_are_counted(tmp_path: Path) -> None:
    lines = [NEURON.format(rank, seconds) for seconds in (120, 240) for rank in (0, 1)]
    log = tmp_path / "job.log"
    log.write_text("\n".join(lines) + "\n")
    (finding,) = diagnose_paths([log], load_catalogue()).findings
    assert finding.rule == "JOIN004" and not finding.who
    assert "ranks 0-1 of 8 wait for the others" in finding.summary and "240 s" in finding.summary
    log.write_text("\n".join([*lines, "step 1 loss 0.9", "step 2 loss 0.8"]))
    assert not diagnose_paths([log], load_catalogue()).findings


@pytest.mark.parametrize("severity", ["INFO", "DEBUG"])
def test_what_a_tracker_passes_on_as_an_error_is_none(tmp_path: Path, severity: str) -> None:
    relayed = "ERROR Tracker$Logger: 2022-06-01 10:06:44,645 {0} [{1}]     train-logloss:0.4393"
    assert not errors(tmp_path, *(relayed.format(severity, n) for n in range(3)))
    assert errors(tmp_path, relayed.format("ERROR", 0))


def test_the_end_of_a_pasted_block_is_no_sign_of_life(tmp_path: Path) -> None:
    raised = "RuntimeError: the batch of this rank is empty"
    text = (
        '```\nTraceback (most recent call last):\n  File "/w/t.py", line 3, in <module>\n    f()\n'
        f"{raised}\n```"
    )
    (finding,) = errors(tmp_path, text)
    assert "caught" not in " ".join(e.observed for e in finding.evidence)
