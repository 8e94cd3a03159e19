"""The task that the name of a log, or of its folder, states."""

from __future__ import annotations

import pytest

from allaboard.diagnosis.logs.task_identification import task_from_name


@pytest.mark.parametrize(
    ("file", "task"),
    [
        ("logs/ps-1.log", "ps 1"),
        ("logs/Worker_3_stderr.txt", "worker 3"),
        ("chief/stdout.log", "chief 0"),
        ("job-ps1/stdout.log", "ps 1"),
        ("/tmp/allaboard-ps1y_wpt/serve.log", ""),
        ("/tmp/tmpworker0x/run.log", ""),
        ("steps1.log", ""),
    ],
)
def test_a_task_is_a_word_of_its_own(file: str, task: str) -> None:
    assert task_from_name(file) == task
