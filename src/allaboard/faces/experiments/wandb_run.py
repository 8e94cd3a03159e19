"""Scalars and findings in Weights & Biases. Tried on wandb 0.31.

Our run is kept below allaboard's run folder, since `wandb.init` makes the link ``wandb/latest-run`` and the
logs in ``wandb/`` anew: those in the working directory are the script's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from allaboard.faces.experiments.scalar_table import RUN, ScalarPoint
from allaboard.faces.experiments.script_run import OWN_NAME, ScriptRunTracker, own_labels, own_name
from allaboard.faces.experiments.tracker import Record
from allaboard.facts import Snapshot, TrackerRun

SCRIPT_VARIABLES = (
    "WANDB_RUN_ID", "WANDB_NAME", "WANDB_RUN_GROUP", "WANDB_JOB_TYPE", "WANDB_RESUME", "WANDB_NOTES",
    "WANDB_TAGS", "WANDB_SWEEP_ID", "WANDB_SERVICE", "WANDB_CONFIG_PATHS", "WANDB_DIR",
)  # fmt: skip
"""Variables that are meant for the script's run; with these, ours would be the same one."""
STEP = f"{RUN}/step"
"""The horizontal axis of our charts; wandb's own step counts what is logged."""
INIT_TIMEOUT_S = 60.0
"""Seconds after which a server that does not answer is an error, and is tried again later."""
FINDINGS = f"{RUN}/findings_table"


class WandbTracker(ScriptRunTracker):
    """A run of wandb in the project and the group of the script's."""

    package = "wandb"

    def __init__(self, is_optional: bool = False) -> None:
        super().__init__(is_optional)
        self._package: Any = None
        self._run: Any = None
        self._findings: list[list[Any]] = []

    def open(self, package: Any, script_run: TrackerRun, snapshot: Snapshot) -> str:
        """Open our run. Not online and without a key, wandb raises: nobody can be asked here."""
        for name in SCRIPT_VARIABLES:
            os.environ.pop(name, None)
        self._package = package
        self._run = package.init(
            project=script_run.project or None,
            entity=script_run.entity or None,
            group=script_run.group or None,
            name=own_name(script_run, snapshot),
            job_type=OWN_NAME,
            tags=[OWN_NAME],
            config=own_labels(script_run, snapshot),
            dir=snapshot.run.run_dir or None,
            mode="offline" if script_run.offline else "online",
            settings=_quiet_settings(package),
        )
        self._run.define_metric(STEP, hidden=True)
        self._run.define_metric("*", step_metric=STEP)
        if script_run.offline:
            return f"to upload them: wandb sync {Path(self._run.dir).parent}"
        return str(self._run.url)

    def write(self, records: Sequence[Record]) -> None:
        """Log each point, and the table of all findings if it has grown."""
        findings = len(self._findings)
        for record in records:
            if isinstance(record, ScalarPoint):
                # Its own time: it may have waited until the script's run was seen.
                self._run.log({"_timestamp": record.unix_s, STEP: record.step, **record.values})
            else:
                self._findings.append([record.step, record.title, record.text])
        if len(self._findings) > findings:
            columns = ["step", "finding", "text"]
            table = self._package.Table(columns=columns, data=self._findings)
            self._run.log({STEP: records[-1].step, FINDINGS: table})

    def close(self, snapshot: Snapshot) -> None:
        """Write how the run ended, and wait until all is sent."""
        outcome = snapshot.run.outcome
        self._run.summary.update({f"{RUN}/outcome": outcome, f"{RUN}/reason": snapshot.run.reason})
        self._run.finish(exit_code=0 if outcome == "completed" else 1)


def _quiet_settings(package: Any) -> Any:
    """Return settings with which wandb records nothing of this process: the run is that of the job."""
    return package.Settings(
        console="off",
        disable_code=True,
        disable_git=True,
        init_timeout=INIT_TIMEOUT_S,
        silent=True,
        x_disable_meta=True,
        x_disable_stats=True,
    )
