"""What trackers have in common whose runs a script opens: wandb, MLflow, trackio.

allaboard writes to a run of its own, in the same project and group. The script's run is left alone: it counts
its own steps, and a second writer would make it drop what the script logs.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from allaboard.faces.experiments.tracker import MissingTrackerError, Record
from allaboard.facts import Snapshot, TrackerRun

OWN_NAME = "allaboard"
"""Type of our run; it also ends its name."""


class ScriptRunTracker(abc.ABC):
    """A run beside that of the script."""

    package = ""
    """The tracker's package."""

    def __init__(self, is_optional: bool = False) -> None:
        self.is_optional = is_optional
        self.subject = f"scalars and findings for {self.package} (--tracker)"

    def find_place(self, snapshot: Snapshot) -> str:
        """Return where our run is, once a rank has opened one."""
        script_run = find_script_run(snapshot, self.package)
        if script_run is None:
            return ""
        try:
            package = import_module(self.package)
        except ImportError as error:
            raise MissingTrackerError(
                f"the script uses {self.package}, which cannot be imported here ({error}): install it where "
                f"allaboard is: pip install {self.package}"
            ) from None
        return self.open(package, script_run, snapshot)

    def why_no_place(self) -> str:
        """Return that no rank has opened a run."""
        return f"no rank was seen to have a run of {self.package} at its first step"

    @abc.abstractmethod
    def open(self, package: Any, script_run: TrackerRun, snapshot: Snapshot) -> str:
        """Open our run, and return where it is, for people."""

    @abc.abstractmethod
    def write(self, records: Sequence[Record]) -> None:
        """Write the records."""

    @abc.abstractmethod
    def close(self, snapshot: Snapshot) -> None:
        """Write how the run ended, and close ours."""


def find_script_run(snapshot: Snapshot, package: str) -> TrackerRun | None:
    """Return the run of the first rank that has one; None if none has."""
    runs = (run for rank in snapshot.ranks for run in rank.trackers if run.tracker == package)
    return next(runs, None)


def own_name(script_run: TrackerRun, snapshot: Snapshot) -> str:
    """Return the name of our run: that of the script's, and ours."""
    return f"{script_run.name or script_run.id or snapshot.run.job} {OWN_NAME}"


def own_labels(script_run: TrackerRun, snapshot: Snapshot) -> dict[str, str]:
    """Return what links our run to the script's and to the run folder."""
    run = snapshot.run
    return {
        "script_run": script_run.id or script_run.name,
        "job": run.job,
        "host": run.host,
        "run_folder": run.run_dir,
        "allaboard": run.allaboard,
    }
