"""Scalars and findings in MLflow. Tried on MLflow 3.17.

Our run is a child of the script's: MLflow shows a run below the one that its tag ``mlflow.parentRunId``
names, of which the parent itself knows nothing. The findings are its description, which is shown as Markdown.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from allaboard.faces.experiments.scalar_table import ScalarPoint
from allaboard.faces.experiments.script_run import ScriptRunTracker, own_labels, own_name
from allaboard.faces.experiments.tracker import Record
from allaboard.facts import Snapshot, TrackerRun

URI_VARIABLE = "MLFLOW_TRACKING_URI"
BOUNDS = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
"""Variables, unless they are set, so that a server that does not answer is an error soon: MLflow would try
for minutes, and would count as hanging. What failed is written again later."""
MAX_BATCH = 1000
"""Metrics that MLflow takes at once (mlflow.utils.validation.MAX_METRICS_PER_BATCH)."""
MAX_DESCRIPTION = 5000
"""Characters of a tag that every version and every store of MLflow takes."""
STATUSES = {"completed": "FINISHED", "interrupted": "KILLED"}
"""MLflow's word for an outcome; FAILED for all others."""


class MlflowTracker(ScriptRunTracker):
    """A run of MLflow in the experiment of the script's."""

    package = "mlflow"

    def __init__(self, is_optional: bool = False) -> None:
        super().__init__(is_optional)
        self._package: Any = None
        self._client: Any = None
        self._run_id = ""
        self._findings: list[str] = []

    def open(self, package: Any, script_run: TrackerRun, snapshot: Snapshot) -> str:
        """Open our run."""
        for name, value in BOUNDS.items():
            os.environ.setdefault(name, value)
        uri = _tracking_uri(script_run)
        self._package = package
        self._client = package.MlflowClient(tracking_uri=uri)
        tags = {
            "mlflow.parentRunId": script_run.id,
            "mlflow.source.name": "allaboard",
            **{
                f"allaboard.{name}": value
                for name, value in own_labels(script_run, snapshot).items()
            },
        }
        name = own_name(script_run, snapshot)
        run = self._client.create_run(script_run.project, tags=tags, run_name=name)
        self._run_id = run.info.run_id
        return f"the run {name!r} below the script's, in {script_run.uri}"

    def write(self, records: Sequence[Record]) -> None:
        """Log all points, and the description if there are new findings."""
        metrics = []
        findings = []
        for record in records:
            if isinstance(record, ScalarPoint):
                at_ms = int(record.unix_s * 1000)
                metrics += [
                    self._package.entities.Metric(name, value, at_ms, record.step)
                    for name, value in record.values.items()
                ]
            else:
                findings.append(f"Step {record.step}: {record.text}")
        for start in range(0, len(metrics), MAX_BATCH):
            self._client.log_batch(self._run_id, metrics=metrics[start : start + MAX_BATCH])
        if findings:
            self._findings += findings
            description = "\n\n".join(reversed(self._findings))[:MAX_DESCRIPTION]
            self._client.set_tag(self._run_id, "mlflow.note.content", description)

    def close(self, snapshot: Snapshot) -> None:
        """Write how the run ended."""
        run = snapshot.run
        self._client.set_tag(self._run_id, "allaboard.outcome", run.outcome)
        self._client.set_tag(self._run_id, "allaboard.reason", run.reason[:MAX_DESCRIPTION])
        self._client.set_terminated(self._run_id, STATUSES.get(run.outcome, "FAILED"))


def _tracking_uri(script_run: TrackerRun) -> str:
    """Return where the script's run is kept. The probe passes on no password: one may be in the variable."""
    variable = os.environ.get(URI_VARIABLE, "")
    scheme, separator, rest = variable.partition("://")
    credentials, has_credentials, location = rest.partition("@")
    if has_credentials and "/" not in credentials:
        return variable if scheme + separator + location == script_run.uri else script_run.uri
    return script_run.uri
