"""torchrun's prefix is the number on the node; the rank is told where anything tells it."""

from __future__ import annotations

from allaboard.diagnosis.logs.log_demux import attribute_file, split_by_process
from allaboard.facts import Exhibit
from allaboard.formats.dumps.local_ranks import assign_ranks
from allaboard.formats.dumps.log_prefixes import split_labels


def _ranks(*lines: str) -> list[int]:
    return [label.rank for label, _ in assign_ranks(split_labels("\n".join(lines)))]


def test_one_node_of_which_nothing_is_told_is_the_first() -> None:
    assert _ranks("[default0]:a", "[default1]:b") == [0, 1]


def test_torch_s_own_label_tells_the_node_s_others() -> None:
    assert _ranks("[default1]:[rank9]: lost", "[default0]:a", "[default1]:b") == [9, 8, 9]


def test_the_summary_of_failures_tells_them() -> None:
    assert _ranks("[default1]:b", "  rank      : 5 (local_rank: 1)") == [5, -1]


def test_a_task_around_it_is_the_node_and_no_rank() -> None:
    lines = [f"{task}: [default{local}]:x" for task in (0, 1) for local in (0, 1)] * 3
    assert set(_ranks(*lines)) == {-1}
    told = [*lines, "1: [default0]:[rank2]: y"]
    assert [_ranks(*told)[i] for i in range(4)] == [-1, -1, 2, 3]


def test_two_nodes_in_one_file_that_contradict_each_other_name_none() -> None:
    assert _ranks("[default0]:[rank0]: a", "[default0]:[rank8]: b", "[default1]:c") == [0, 8, -1]


def test_processes_that_are_not_known_apart_from_each_other_stay_apart() -> None:
    lines = ["0: [default0]:a", "0: [default1]:b", "1: [default0]:c", "1: [default1]:d"] * 3
    parts = split_by_process(Exhibit(name="slurm.out", data="\n".join(lines).encode()))
    assert sorted(p.text.split("\n")[0] for p in parts) == ["a", "b", "c", "d"]
    assert {p.rank for p in parts} == {-1}


def test_a_file_of_torchrun_is_of_the_rank_that_its_lines_tell() -> None:
    data = b"loading\n[rank9]: Traceback\n"
    file = Exhibit(name="logs/h1/none_x/attempt_0/1/stderr.log", data=data, rank=1)
    assert attribute_file(file).rank == 9
    assert attribute_file(Exhibit(name="rank1.log", data=data, rank=1)).rank == 9, (
        "of a node, not of the job"
    )
    assert attribute_file(Exhibit(name="rank1.log", data=b"loading\n", rank=1)).rank == 1
