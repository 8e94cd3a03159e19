"""Scalars and findings in trackio. Tried on trackio 0.43.

trackio raises no error when it cannot write: it warns, in the log of this process, and keeps what it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any

from allaboard.faces.experiments.scalar_table import RUN, ScalarPoint
from allaboard.faces.experiments.script_run import ScriptRunTracker, own_labels, own_name
from allaboard.faces.experiments.tracker import Record
from allaboard.facts import Snapshot, TrackerRun

MEASURING_OPTIONS = ("auto_log_gpu", "auto_log_cpu")
"""Options by which trackio measures its own process, in the versions that have them."""


class TrackioTracker(ScriptRunTracker):
    """A run of trackio in the project and the group of the script's."""

    package = "trackio"

    def __init__(self, is_optional: bool = False) -> None:
        super().__init__(is_optional)
        self._package: Any = None
        self._run: Any = None

    def open(self, package: Any, script_run: TrackerRun, snapshot: Snapshot) -> str:
        """Open our run."""
        self._package = package
        options = signature(package.init).parameters
        name = own_name(script_run, snapshot)
        self._run = package.init(
            project=script_run.project,
            name=name,
            group=script_run.group or None,
            space_id=script_run.uri or None,
            config=own_labels(script_run, snapshot),
            **{option: False for option in MEASURING_OPTIONS if option in options},
        )
        return f"the run {name!r} in the project {script_run.project!r}"

    def write(self, records: Sequence[Record]) -> None:
        """Log each point, and each finding as Markdown."""
        for record in records:
            if isinstance(record, ScalarPoint):
                self._run.log(record.values, step=record.step)
            else:
                text = self._package.Markdown(record.text)
                self._run.log({f"{RUN}/findings_text": text}, step=record.step)

    def close(self, snapshot: Snapshot) -> None:
        """Write how the run ended, and wait until all is kept."""
        run = snapshot.run
        text = self._package.Markdown(f"{run.outcome}: {run.reason}")
        self._run.log({f"{RUN}/outcome": text}, step=run.step_highest)
        self._run.finish()
