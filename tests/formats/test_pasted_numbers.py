"""Numbers of lines and progress bars before what a process wrote are not part of it."""

from __future__ import annotations

from allaboard.formats.dumps.log_prefixes import split_labels
from allaboard.formats.dumps.pasted_text import unquote

TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "/w/train.py", line 9, in main',
    "    step(batch)",
    '  File "/w/train.py", line 4, in step',
    "    raise ValueError('bad')",
    "ValueError: bad",
]


def test_numbers_of_lines_are_taken_away() -> None:
    numbered = "\n".join(f"{n} {line}" for n, line in enumerate(TRACEBACK, 64))
    assert unquote(numbered) == "\n".join(TRACEBACK)
    tabbed = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(TRACEBACK, 1))
    assert unquote(tabbed) == "\n".join(TRACEBACK)


def test_ranks_of_a_launcher_are_no_numbers_of_lines() -> None:
    labelled = "\n".join(f"{n}: {line}" for n, line in enumerate(TRACEBACK))
    assert unquote(labelled) == labelled
    of_one_rank = "\n".join(f"1: {line}" for line in TRACEBACK)
    assert unquote(of_one_rank) == of_one_rank


def test_what_begins_behind_a_progress_bar_is_read() -> None:
    bar = "  5%|5         | 410/7800 [05:41<1:37:37,  1.21s/it]"
    fatal = "F0000 00:00:1717141650.890307    9276 client.cc:487] Non-OK-status: INTERNAL"
    assert [line for _, line in split_labels(f"{bar}{fatal}\n{bar}")] == [fatal, bar]
