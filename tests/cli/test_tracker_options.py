"""`--tensorboard` and `--tracker`: what they take, what is refused, and whose agent writes."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from allaboard.configuration.launcher_context import LauncherContext
from allaboard.faces.experiments.tracker_settings import TrackerSettings
from allaboard.options.command_parser import build_parser
from allaboard.options.reporting import choose_reporters
from allaboard.options.run_options import add_arguments
from allaboard.options.tracker_options import choose_trackers
from allaboard.options.usage_error import UsageError


def parse(*words: str) -> argparse.Namespace:
    return build_parser("run", add_arguments).parse_checked_arguments(words)


def test_what_tensorboard_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert choose_trackers(parse()) is None
    for typed, folder in (
        ("auto", "auto"),
        ("runs/a", f"{tmp_path}/runs/a"),
        ("s3://b/a", "s3://b/a"),
    ):
        settings = choose_trackers(parse("--tensorboard", typed))
        assert settings == TrackerSettings(tensorboard=folder)


def test_what_tracker_takes(capsys: pytest.CaptureFixture[str]) -> None:
    typed = ("--tracker", "wandb", "--tracker=mlflow", "--tracker", "wandb")
    assert choose_trackers(parse(*typed)) == TrackerSettings(trackers=("wandb", "mlflow"))
    with pytest.raises(UsageError, match="wandb"):
        parse("--tracker", "wandbb")


def test_every_tracker_of_the_option_can_be_written_to() -> None:
    from allaboard.faces.experiments.__main__ import SCRIPT_TRACKERS
    from allaboard.options.tracker_options import TRACKERS

    assert ("auto", *SCRIPT_TRACKERS) == TRACKERS


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    file = tmp_path / "events"
    file.touch()
    with pytest.raises(UsageError, match=f"--tensorboard expects a folder, and {file} is a file"):
        choose_trackers(parse("--tensorboard", str(file)))


def test_of_a_job_of_several_tasks_the_first_one_writes() -> None:
    options = parse("--tensorboard", "auto")
    subjects = [
        [r.subject for r in choose_reporters(options, LauncherContext("1", rank, "h:1", False), {})]
        for rank in (0, 1)
    ]
    assert subjects == [["scalars and findings"], []]
