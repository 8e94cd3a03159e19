"""Headings that give the lines below them to a process."""

from __future__ import annotations

from allaboard.formats.dumps.log_prefixes import NO_LABEL, Label
from allaboard.formats.dumps.log_sections import label_sections


def labels_of(*lines: str) -> dict[str, Label]:
    """Return the label of each line."""
    return {line: label for label, line in label_sections([(NO_LABEL, line) for line in lines])}


def test_the_output_of_tail_is_of_the_files_that_it_names() -> None:
    labels = labels_of("==> logs/rank3.log <==", "KeyError: 3", "", "==> gpu-b.log <==", "step 4")
    assert labels["KeyError: 3"] == Label(rank=3)
    assert labels["step 4"] == Label(host="gpu-b.log")


def test_a_launcher_heads_and_ends_what_a_rank_wrote() -> None:
    labels = labels_of(
        "----------Begin global rank 1 STDERR----------",
        "KeyError: 1",
        "----------End global rank 1 STDERR----------",
        "Global rank 0 (PID 7) exited with code -15",
    )
    assert labels["KeyError: 1"] == Label(rank=1)
    assert labels["Global rank 0 (PID 7) exited with code -15"] == NO_LABEL


def test_a_rule_and_an_arrow_are_no_headings() -> None:
    lines = ("----------", "==> training starts", "KeyError: 1")
    assert set(labels_of(*lines).values()) == {NO_LABEL}
