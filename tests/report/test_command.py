"""The command in a report, which people hand on."""

from __future__ import annotations

import pytest

from allaboard.agent.final_report import assemble_report
from allaboard.facts import Outcome
from allaboard.facts.samples import sample_job, sample_member
from allaboard.formats.secret_hints import redact


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("train.py --token hunter2hunter2", "train.py --token (redacted)"),
        ("train.py --db-password=hunter2hunter2", "train.py --db-password=(redacted)"),
        ("train.py --store s3://me:hunter2@h/x", "train.py --store s3://(redacted)@h/x"),
        ("train.py --epochs 3", "train.py --epochs 3"),
        ("train.py --keys 3", "train.py --keys 3"),
    ],
)
def test_it_is_without_passwords(given: str, told: str) -> None:
    report = assemble_report(
        job="j", command=tuple(given.split()), outcome=Outcome.COMPLETED, reason="", code=0, started="",
        seconds=1, run_dir="", view=sample_job(sample_member(0)), findings=(), notes=(),
    )  # fmt: skip
    assert redact(report).command == tuple(told.split())
