"""torchrun's ``[default0]:`` is a number on a node: two nodes' logs have the same, and not the same rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Diagnosis
from allaboard.rules.engine.catalogue import load_catalogue

RAISED = ("Traceback (most recent call last):", '  File "/h/train.py", line 20, in main')
WAITS = (
    "Thread 0x00007f0000000001 (most recent call first):",
    '  File "/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 9 in all_reduce',
    '  File "/h/train.py", line 41 in train',
)
FETCHES = (
    WAITS[0],
    '  File "/h/data.py", line 7 in fetch',
    '  File "/h/train.py", line 30 in train',
)


def node(*of_each: tuple[str, ...]) -> str:
    return "".join(f"[default{n}]:{line}\n" for n, lines in enumerate(of_each) for line in lines)


def told(folder: Path, **files: str) -> Diagnosis:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return diagnose_paths([folder], load_catalogue())


def test_what_two_nodes_raised_is_not_of_one_rank(tmp_path: Path) -> None:
    one, other = node((*RAISED, "ValueError: a"), ("step",)), node((*RAISED, "KeyError: 'b'"))
    found = told(tmp_path, h0__log=one, h1__log=other)
    assert [f.summary for f in found.findings] == [
        "local rank 0 of h0.log raised ValueError at train.py:20 in main",
        "local rank 0 of h1.log raised KeyError at train.py:20 in main",
    ]
    assert all(w.rank < 0 for f in found.findings for w in f.who)
    assert "nothing says which node is which" in found.missing[0]


def test_stacks_of_two_nodes_are_four_processes(tmp_path: Path) -> None:
    found = told(tmp_path, h0__log=node(WAITS, WAITS), h1__log=node(FETCHES, WAITS))
    assert [(c.ranks, c.count, c.odd) for c in found.crowds] == [("", 3, False), ("", 1, True)]
    (finding,) = found.findings
    assert [w.file for w in finding.who] == ["local rank 0 of h1.log"]


def test_lines_that_tell_a_rank_tell_the_node_s(tmp_path: Path) -> None:
    one, other = node(WAITS, WAITS), node(FETCHES, WAITS)
    ranks = "[default1]:[rank1]: a\n", "[default1]:[rank5]: a\n"
    found = told(tmp_path, h0__log=one + ranks[0], h1__log=other + ranks[1])
    assert [c.ranks for c in found.crowds] == ["0-1,5", "4"] and not found.missing


@pytest.mark.parametrize("names", [("a__out", "a__err"), ("stdout__log", "stderr__log")])
def test_output_and_errors_of_one_node_are_of_one(tmp_path: Path, names: tuple[str, str]) -> None:
    texts = node(("step",), ("step",)), node(WAITS, FETCHES)
    found = told(tmp_path, **dict(zip(names, texts, strict=True)))
    assert [c.ranks for c in found.crowds] == ["0", "1"] and not found.missing


def test_another_log_with_the_same_ranks_is_of_another_node(tmp_path: Path) -> None:
    first = node(WAITS) + "[default0]:[rank0]: a\n"
    found = told(tmp_path, h0__log=first, h1__log=node(FETCHES))
    assert {(c.ranks, c.others) for c in found.crowds} == {
        ("0", ()),
        ("", ("local rank 0 of h1.log",)),
    }


def test_the_log_of_a_node_is_not_that_of_the_rank_in_its_name(tmp_path: Path) -> None:
    launcher = "".join(f"{line}\n" for line in (*RAISED, "OSError: of the launcher"))
    found = told(tmp_path, worker_1__log=node(("step",), ("step",)) + launcher)
    assert [w.rank for f in found.findings for w in f.who] == [-1]


def folders(folder: Path, *nodes: tuple[str, tuple[str, ...], tuple[str, ...]]) -> Path:
    """What ``torchrun --log-dir`` leaves of two ranks on each node."""
    for name, *ranks in nodes:
        for local, lines in enumerate(ranks):
            own = folder / name / f"none_{name}" / "attempt_0" / str(local)
            own.mkdir(parents=True, exist_ok=True)
            (own / "stdout.log").write_text("step 1\n")
            (own / "stderr.log").write_text("".join(f"{line}\n" for line in lines))
    return folder


def test_folders_of_two_nodes_are_of_four_processes(tmp_path: Path) -> None:
    found = told(folders(tmp_path, ("h0", FETCHES, WAITS), ("h1", WAITS, WAITS)))
    (finding,) = found.findings
    assert finding.rule == "DUMP001" and finding.certainty == "unknown"
    assert [w.file for w in finding.who] == ["local rank 0 of none_h0"]
    assert {c.others for c in found.crowds if not c.odd} == {
        ("local rank 1 of none_h0", "local rank 0 of none_h1", "local rank 1 of none_h1")
    }
    assert "none_h0" in found.missing[0] and "none_h1" in found.missing[0]


def test_a_folder_of_one_node_is_of_its_ranks(tmp_path: Path) -> None:
    found = told(folders(tmp_path, ("h0", FETCHES, WAITS)))
    assert [w.rank for f in found.findings for w in f.who] == [0] and not found.missing


def test_one_line_of_a_folder_tells_the_ranks_of_its_node(tmp_path: Path) -> None:
    one, other = ("[rank0]: a", *FETCHES), ("[rank3]: a", *WAITS)
    found = told(folders(tmp_path, ("h0", one, WAITS), ("h1", WAITS, other)))
    assert {(c.ranks, c.odd) for c in found.crowds} == {("0", True), ("1-3", False)}
    assert not found.missing


def test_the_log_of_a_node_and_its_folders_are_of_one_node(tmp_path: Path) -> None:
    folders(tmp_path, ("h0", FETCHES, WAITS))
    found = told(tmp_path, train__log=node(("step",), ("step",)))
    assert [w.rank for f in found.findings for w in f.who] == [0] and not found.missing
