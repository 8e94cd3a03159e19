"""The options ``--tensorboard`` and ``--tracker``: what they take, and the face that they start."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.options.usage_error import raise_usage_error

if TYPE_CHECKING:
    from allaboard.faces.experiments.tracker_settings import TrackerSettings

TRACKERS = ("auto", "wandb", "mlflow", "trackio")


def add_tracker_options(add: Callable[..., argparse.Action]) -> None:
    """Declare the options. ``add`` is the `add_argument` of a parser or of a group."""
    add(
        "--tensorboard",
        metavar="DIR",
        default="",
        help="write scalars (steps per second, waiting, memory, loss, how the ranks differ) and findings for "
        "TensorBoard into this folder; auto: beside the event files that the script itself writes. Needs "
        "tensorboardX: pip install 'allaboard[tensorboard]'",
    )
    add(
        "--tracker",
        metavar="NAME",
        action="append",
        choices=TRACKERS,
        default=[],
        help="write the same to wandb, mlflow or trackio if the script uses it, into a run of its own in the "
        "project and group of the script's; auto: to whichever of them the script uses. May be repeated",
    )


def choose_trackers(options: argparse.Namespace) -> TrackerSettings | None:
    """Return where scalars and findings go; None if they go nowhere.

    A package that is not installed is no error here: the job trains on, and one line says what is missing.

    Raises:
        UsageError: the folder is a file.
    """
    if not options.tensorboard and not options.tracker:
        return None
    from allaboard.faces.experiments.tracker_settings import AUTO, TrackerSettings

    folder = options.tensorboard
    if folder and folder != AUTO and "://" not in folder:
        path = Path(folder).absolute()
        if path.exists() and not path.is_dir():
            raise_usage_error(f"--tensorboard expects a folder, and {path} is a file")
        folder = str(path)
    return TrackerSettings(tensorboard=folder, trackers=tuple(dict.fromkeys(options.tracker)))
