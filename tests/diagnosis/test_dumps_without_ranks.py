"""Dumps that do not say whose they are: nobody gets a number that is none, or is accused as a rank.

The samples are of PyTorch 2.13.0 with gloo under torchrun and torch.multiprocessing.spawn, CPython 3.11.7 and
py-spy 0.4.3; folders were renamed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Certainty, Diagnosis, Finding
from allaboard.report.diagnosis import as_json, as_text
from allaboard.rules.engine.catalogue import load_catalogue

SAMPLES = Path(__file__).parents[1] / "readers" / "samples"
ASLEEP = SAMPLES / "pyspy_asleep"
WAITS, SLEEPS, LOADER = (ASLEEP / f"pyspy.{pid}.txt" for pid in (5901, 5902, 5912))


def of(*paths: Path) -> Diagnosis:
    return diagnose_paths(paths, load_catalogue())


def one(found: Diagnosis) -> Finding:
    (finding,) = found.findings
    assert finding.rule == "DUMP001"
    return finding


def write(folder: Path, **files: Path | str) -> Path:
    for name, what in files.items():
        text = what.read_text() if isinstance(what, Path) else what
        (folder / f"{name}.txt").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("sample", "waits", "odd"),
    [
        ("pyspy_asleep", 5901, 5902),
        ("pyspy_json", 5901, 5902),
        ("pyspy_tree", 5435, 5436),
        ("pyspy_spawned", 13345, 13346),
    ],
)
def test_a_process_of_unknown_rank_is_called_by_its_pid(sample: str, waits: int, odd: int) -> None:
    found = of(SAMPLES / sample)
    finding = one(found)
    assert f"pid {waits} (rank unknown) waits in a collective (all_reduce)" in finding.summary
    assert f"; pid {odd} (rank unknown) is somewhere else: " in finding.summary
    assert [(w.rank, w.index, w.pid) for w in finding.who] == [(-1, -1, odd)]
    assert finding.certainty is Certainty.UNKNOWN
    assert f"allaboard diagnose {odd} {waits}" in finding.fix
    assert "rank 0" not in as_text(found) and "ranks 0" not in as_text(found)
    assert [(c.ranks, c.others, c.odd) for c in found.crowds] in (
        [("", (f"pid {waits}",), False), ("", (f"pid {odd}",), True)],
        [("", (f"pid {odd}",), True), ("", (f"pid {waits}",), False)],
    )


def test_what_is_no_rank_is_told_and_not_accused() -> None:
    assert of(ASLEEP).beside == (
        "pid 5887: torchrun's agent",
        "pids 5912, 5913: DataLoader workers",
    )
    assert of(SAMPLES / "pyspy_spawned").beside == (
        "pid 13333: parent of the processes that it waits for",
        "pid 13344: multiprocessing's resource tracker",
        "pids 13387, 13389: DataLoader workers",
        "pids 13391, 13392, 13393, 13395: workers of a multiprocessing pool",
    )
    assert "no ranks of the job:\n    pid 5887: torchrun's agent" in as_text(of(ASLEEP))


def test_where_all_compute_nobody_is_accused() -> None:
    found = of(SAMPLES / "pyspy_computes")
    assert found.findings == ()
    (crowd,) = found.crowds
    assert crowd.others == ("pid 6025", "pid 6026") and not crowd.odd
    assert "pids 6025, 6026 (ranks unknown): in its own code at train.py:27" in as_text(found)


def test_where_there_is_no_rank_that_is_said() -> None:
    found = of(LOADER, ASLEEP / "pyspy.5887.txt")
    assert found.findings == ()
    assert "no rank was dumped (pid 5887: torchrun's agent; pid 5912: DataLoader worker)" in (
        found.conclusion
    )
    launcher = of(SAMPLES / "pyspy_json" / "pyspy.5887.json")
    assert "py-spy dump --json prints one process" in launcher.conclusion


def test_one_rank_beside_one_worker_is_a_rank() -> None:
    assert "no rank was dumped" not in of(WAITS, LOADER).conclusion


def test_the_name_of_a_file_tells_the_rank_of_the_one_in_it(tmp_path: Path) -> None:
    workers = WAITS.read_text() + LOADER.read_text()
    found = of(write(tmp_path, rank0=workers, rank_1=SLEEPS))
    finding = one(found)
    assert finding.summary.startswith("rank 0 waits in a collective (all_reduce); rank 1 is somewh")
    assert finding.certainty is Certainty.LIKELY and [w.rank for w in finding.who] == [1]
    assert found.beside == ("pid 5912: DataLoader worker",)


def test_the_one_that_started_the_others_has_the_file_s_rank(tmp_path: Path) -> None:
    child = (
        LOADER.read_text()
        .replace("_worker_loop", "_serve", 1)
        .replace("train.py sleep", "-m wandb")
    )
    parent = "/bin/python3.11)\nParent Process 5901: python -u /h/train.py sleep\n"
    child = child.replace("/bin/python3.11)\n", parent, 1)
    found = of(write(tmp_path, rank0=WAITS.read_text() + child, rank1=SLEEPS))
    assert one(found).summary.startswith(
        "rank 0 waits in a collective (all_reduce); rank 1 is some"
    )
    assert found.beside == ("pid 5912: child of pid 5901",)


def test_a_low_pid_of_a_container_is_no_reason_against_a_rank(tmp_path: Path) -> None:
    waits, sleeps = WAITS.read_text().replace("5901", "7"), SLEEPS.read_text().replace("5902", "7")
    assert [w.rank for w in one(of(write(tmp_path, rank6=waits, rank7=sleeps))).who] == [7]


def test_what_a_rank_wrote_before_it_was_started_anew_does_not_count(tmp_path: Path) -> None:
    fh = SAMPLES / "faulthandler_later"
    old, new = (fh / f"fh.{pid}.txt" for pid in (5902, 5901))
    found = of(write(tmp_path, rank0=old.read_text() + "restarted\n" + new.read_text()))
    assert [(c.ranks, c.doing) for c in found.crowds] == [("0", "in a collective")]


def test_a_process_beside_a_named_rank_keeps_out_of_its_number(tmp_path: Path) -> None:
    # Without ranks of their own they were numbered from 0, and took the place of those that have one.
    found = of(write(tmp_path, a=WAITS, rank0=SLEEPS))
    assert one(found).summary.startswith(
        "pid 5901 (rank unknown) waits in a collective (all_reduce); rank 0 is somewhere else"
    )
    assert one(found).certainty is Certainty.UNKNOWN
    assert {(c.ranks, c.others) for c in found.crowds} == {("", ("pid 5901",)), ("0", ())}
    assert '"others": [\n        "pid 5901"\n      ]' in as_json(found)
    assert "[0, pid 5901] " in as_text(found, verbose=True)


@pytest.mark.parametrize("name", ["process_{}", "proc-{}", "worker_{}", "pyspy.{}", "stack{}"])
def test_a_number_that_is_a_pid_is_no_rank(tmp_path: Path, name: str) -> None:
    found = of(write(tmp_path, **{name.format(5901): WAITS, name.format(5902): SLEEPS}))
    assert [w.pid for w in one(found).who] == [5902] and one(found).who[0].rank == -1
    assert not found.missing


def test_a_rank_is_known_by_the_environment_in_the_dump(tmp_path: Path) -> None:
    def variables(rank: int) -> str:
        return f"LOCAL_RANK=0\nRANK={rank}\nWORLD_SIZE=8\n"

    waits, sleeps = WAITS.read_text(), SLEEPS.read_text()
    for text in (
        variables(4) + waits + variables(5) + sleeps,
        waits + variables(4) + sleeps + variables(5),
    ):
        file = tmp_path / "all.txt"
        file.write_text(text)
        assert one(of(file)).summary.startswith("rank 4 waits"), text
        assert [w.rank for w in one(of(file)).who] == [5]


def test_a_variable_that_one_of_several_printed_is_nobody_s(tmp_path: Path) -> None:
    shared = (SAMPLES / "faulthandler_shared" / "train.log").read_text()
    write(tmp_path, a="RANK=0 WORLD_SIZE=2\n" + "step\n" * 200 + shared)
    assert [c.ranks for c in of(tmp_path).crowds] == ["", ""]
    write(tmp_path, a="RANK=0\n" + WAITS.read_text() + SLEEPS.read_text())
    assert [c.ranks for c in of(tmp_path).crowds] == ["", ""]
    # Just above a dump, it is of that process.
    alone = (SAMPLES / "faulthandler_later" / "fh.5901.txt").read_text()
    write(tmp_path, a="RANK=3\n" + alone)
    assert [c.ranks for c in of(tmp_path).crowds] == ["3"]


@pytest.mark.parametrize("flag", ["--local_rank {}", "--local-rank={}", "--rank {}"])
def test_a_rank_is_known_by_the_command(tmp_path: Path, flag: str) -> None:
    def with_rank(file: Path, rank: int) -> str:
        return file.read_text().replace("train.py sleep", f"train.py {flag.format(rank)} sleep")

    write(tmp_path, a=with_rank(WAITS, 0), b=with_rank(SLEEPS, 1))
    assert [w.rank for w in one(of(tmp_path)).who] == [1]
    # The same number twice is that on two nodes.
    write(tmp_path, b=with_rank(SLEEPS, 0))
    assert [(w.rank, w.pid) for w in one(of(tmp_path)).who] == [(-1, 5902)]


def test_a_rank_is_known_by_the_variables_of_functions() -> None:
    # Recorded with --locals.
    assert one(of(SAMPLES / "pyspy_locals")).summary.startswith("rank 0 waits in a collective")


def test_another_program_is_not_accused(tmp_path: Path) -> None:
    other = SLEEPS.read_text().replace("-u /h/train.py sleep", "/usr/bin/supervisor --watch")
    found = of(write(tmp_path, a=WAITS, b=other))
    assert found.findings == ()
    assert found.beside == ("pid 5902: another program than theirs (supervisor)",)


def test_what_a_waiting_process_started_is_not_accused(tmp_path: Path) -> None:
    # py-spy dump --subprocesses tells the parents.
    child = SLEEPS.read_text().replace(
        "/bin/python3.11)\n",
        "/bin/python3.11)\nParent Process 5901: python -u /h/train.py sleep\n",
        1,
    )
    found = of(write(tmp_path, a=WAITS, b=child))
    assert found.findings == () and found.beside == ("pid 5902: child of pid 5901",)


def test_a_worker_that_is_in_the_user_s_code_is_shown_there(tmp_path: Path) -> None:
    idle = "    _PollLikeSelector.select (selectors.py:415)\n"
    busy = LOADER.read_text().replace(idle, "    Numbers.__getitem__ (data.py:14)\n", 1)
    found = of(write(tmp_path, a=WAITS, b=busy, c=ASLEEP / "pyspy.5913.txt"))
    assert found.beside == (
        "pid 5912: DataLoader worker, at data.py:14 in __getitem__",
        "pid 5913: DataLoader worker",
    )


def test_files_of_two_nodes_that_are_called_by_local_ranks_tell_no_rank(tmp_path: Path) -> None:
    for node, dump in (("h0", WAITS), ("h1", SLEEPS)):
        (tmp_path / node).mkdir()
        write(tmp_path / node, rank0=dump)
    assert one(of(tmp_path)).summary.startswith("pid 5901 (rank unknown) waits")


def test_a_pid_that_may_be_of_two_hosts_is_told(tmp_path: Path) -> None:
    other = SLEEPS.read_text().replace("5902", "5901")
    found = of(write(tmp_path, a=WAITS, b=other))
    assert found.findings == () and [c.others for c in found.crowds] == [("pid 5901",)]
    (note,) = found.notes
    assert "pid 5901 is in" in note and "call the files rank0.txt" in note
    assert not of(write(tmp_path, b=WAITS)).notes


def test_frames_of_native_code_are_not_the_user_s(tmp_path: Path) -> None:
    # py-spy dump --native
    native = "    pthread_cond_wait (libc.so.6)\n    c10d::Work::wait (libtorch_cpu.so)\n"
    head = 'Thread 5901 (idle): "MainThread"\n'
    found = of(write(tmp_path, a=WAITS.read_text().replace(head, head + native), b=SLEEPS))
    assert {c.at for c in found.crowds} == {"train.py:47 in train", "train.py:20 in nap"}
    assert "wait in" not in one(found).summary and "(all_reduce)" in one(found).summary


def test_dumps_of_one_process_are_one_of_it(tmp_path: Path) -> None:
    later = SAMPLES / "faulthandler_later"
    write(tmp_path, a=WAITS, b=SLEEPS)
    found = of(tmp_path, later, SAMPLES / "pyspy_json" / "pyspy.5901.json")
    assert [c.count for c in found.crowds] == [1, 1] and one(found).who[0].pid == 5902


def test_files_are_called_by_their_names_where_no_pid_is_told() -> None:
    finding = one(of(SAMPLES / "faulthandler_later"))
    assert finding.summary.startswith("fh.5901.txt (rank unknown) waits in a collective")
    assert str(finding.who[0]) == "fh.5902.txt (rank unknown)"
    assert finding.certainty is Certainty.UNKNOWN


def test_what_several_processes_wrote_into_one_file_is_told_apart() -> None:
    # Recorded: faulthandler.register(SIGUSR1) in two ranks with two data loaders' workers each, one stderr.
    found = of(SAMPLES / "faulthandler_shared")
    assert one(found).summary.startswith("train.log:5 (rank unknown) waits in a collective")
    assert [w.file for w in one(found).who] == ["train.log:24"]
    assert found.beside == ("train.log:77, train.log:147: DataLoader workers",)


def test_a_rank_that_is_not_known_to_be_here_is_not_said_to_be_absent(tmp_path: Path) -> None:
    found = of(SAMPLES / "torch_missing", write(tmp_path, a=WAITS))
    assert found.missing == (
        "rank 2 of 3: nothing here is known to belong to it; it may be pid 5901",
    )


def test_one_dump_without_a_finding_still_says_where_it_is_and_what_to_dump() -> None:
    waits = of(WAITS).conclusion
    assert waits.startswith("no finding: pid 5901 (rank unknown) is in a collective at ")
    assert "in all_reduce, where it waits for the other ranks" in waits
    assert "dump every rank twice" in waits and "allaboard diagnose" in waits
    asleep = of(SLEEPS).conclusion
    assert "pid 5902 (rank unknown) is in its own code at " in asleep
    assert "waits for the other ranks" not in asleep


def test_where_all_wait_at_one_place_nobody_waits_for_one_of_these(tmp_path: Path) -> None:
    same = WAITS.read_text().replace("5901", "5903")
    found = of(write(tmp_path, rank0=WAITS, rank1=same))
    assert found.findings == ()
    assert "ranks 0,1 are in a collective" in found.conclusion.replace("0-1", "0,1")
    assert "nobody waits for one of these" in found.conclusion
