"""Prefixes of launchers and collectors, each as its documents show it; what only looks like one stays."""

from __future__ import annotations

import pytest

from allaboard.formats.dumps.log_prefixes import NO_LABEL, split_labels

TOLD = [
    "step 1",
    "Traceback (most recent call last):",
    '  File "/h/train.py", line 3, in f',
    "",
    "KeyError: 1",
]
TIME = "2026-01-02T03:04:05.123456789Z "
PREFIXES = {
    # prefix: rank, host, pid
    "2: ": (2, "", 0),
    " 2: ": (2, "", 0),
    "[1,2]<stderr>:": (2, "", 0),
    "[job-1,2]<stderr>: ": (2, "", 0),
    "[2]<stdout>:": (2, "", 0),
    "[2] ": (2, "", 0),
    "[default2]:": (-1, "", 0),
    TIME: (-1, "", 0),
    TIME + "stderr F ": (-1, "", 0),
    TIME + "2: ": (2, "", 0),
    "[pod/job-worker-2/main] ": (-1, "job-worker-2", 0),
    "job-worker-2 main ": (-1, "job-worker-2", 0),
    "worker-2  | ": (-1, "worker-2", 0),
    "(RayTrainWorker pid=812, ip=10.0.0.3) ": (-1, "10.0.0.3", 812),
    "\x1b[36m(train pid=812)\x1b[0m ": (-1, "", 812),
    "Jan 02 03:04:05 node2 train[812]: ": (-1, "node2", 812),
    "2026-01-02T03:04:05+0000 node2 train[812]: ": (-1, "node2", 812),
}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_is_taken_off_and_names_whom_it_names(prefix: str) -> None:
    read = split_labels("\n".join(prefix + line for line in TOLD))
    assert [line for _, line in read] == TOLD
    assert {(one.rank, one.host, one.pid) for one, _ in read} == {PREFIXES[prefix]}


def test_torch_s_own_label_stays_and_is_within_the_launcher_s() -> None:
    read = split_labels("\n".join(f"1: [rank5]: {line}" for line in TOLD))
    assert [line for _, line in read] == [f"[rank5]: {line}" for line in TOLD]
    assert {(one.rank, one.by_launcher) for one, _ in read} == {(5, True)}


def test_what_stood_under_a_progress_bar_and_colours_are_gone() -> None:
    assert split_labels("\r 10%\r 20%\r\x1b[31mTraceback\x1b[0m\r")[0] == (NO_LABEL, "Traceback")


@pytest.mark.parametrize(
    "text",
    [
        "Missing ranks:\n1: [allreduce.a]\n3: [allreduce.a]\nand so on",
        "\n".join(f"{step}: loss 0.3" for step in range(30)),
        "INFO start\nname | value\nlr   | 0.1\nrun-1 main loss 3\nDone: yes",
        "epoch 1\n[1] first of all\nepoch 2\nepoch 3",
    ],
)
def test_what_only_looks_like_a_prefix_stays(text: str) -> None:
    assert split_labels(text) == [(NO_LABEL, line) for line in text.split("\n")]
