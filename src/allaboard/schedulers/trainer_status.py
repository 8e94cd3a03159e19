"""The status of a TrainJob: progress and the finding, as Kubeflow Trainer shows them in ``trainerStatus``.

Trainer (since 2.2, feature gate TrainJobStatus) sets three variables in the containers of a TrainJob: an
HTTPS URL, a file with the certificate of its server, and a file with a token that is renewed every hour. A
POST of ``{"trainerStatus": ...}`` replaces what was reported before; so whoever reports besides (the callback
of transformers, the SDK's update_trainjob_status) would be overwritten, and nothing is sent unless the user
asked for it.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from allaboard.facts import Finding, JobView, Severity
from allaboard.report.finding_text import finding_title

URL_VARIABLE = "KUBEFLOW_TRAINER_SERVER_URL"
CA_VARIABLE = "KUBEFLOW_TRAINER_SERVER_CA_CERT"
TOKEN_VARIABLE = "KUBEFLOW_TRAINER_SERVER_TOKEN"  # the name of a variable
MAX_VALUE_LENGTH = 64
"""Characters of a metric's value that the API takes."""
INTERVAL_S = 15.0
"""Time between two reports: each is a write to the cluster's API server."""
TIMEOUT_S = 5.0
"""How long one report may take, and the last one may keep the end of the run waiting."""


class TrainerServer(NamedTuple):
    """Where the status of this TrainJob goes."""

    url: str
    ca_path: Path
    token_path: Path


def missing_server(environment: Mapping[str, str]) -> str:
    """Return why there is no server to report to, as a sentence; "" if there is one."""
    if find_trainer_server(environment) is not None:
        return ""
    names = (URL_VARIABLE, CA_VARIABLE, TOKEN_VARIABLE)
    unset = next((name for name in names if not environment.get(name)), "")
    why = f"{unset} is not set" if unset else f"{URL_VARIABLE} does not begin with https://"
    return (
        f"--trainer-status: nothing is reported, because {why}; Kubeflow Trainer 2.2 sets it with the "
        "feature gate TrainJobStatus"
    )


def find_trainer_server(environment: Mapping[str, str]) -> TrainerServer | None:
    """Return the server whose variables are set; None if one of them is missing."""
    values = [environment.get(name, "") for name in (URL_VARIABLE, CA_VARIABLE, TOKEN_VARIABLE)]
    if not all(values) or not values[0].startswith("https://"):
        return None
    return TrainerServer(values[0], Path(values[1]), Path(values[2]))


def trainer_status(view: JobView, findings: Sequence[Finding], utc_time: str) -> dict[str, Any]:
    """Return the body of a report. How much is left to do is not known, so no percentage is claimed."""
    members = [m for m in view.members if not m.has_no_part]
    metrics = {
        "allaboard_workers_alive": str(sum(m.alive for m in members)),
        "allaboard_steps": str(max((m.step for m in members), default=0)),
    }
    losses = [m.last_loss for m in members if m.last_loss is not None]
    if losses:
        metrics["allaboard_loss"] = f"{losses[0]:.6g}"
    present = [f for f in findings if f.over is None and f.severity is not Severity.INFO]
    present.sort(key=lambda f: f.severity is not Severity.ERROR)
    if present:
        metrics["allaboard_finding"] = finding_title(present[0])
    return {
        "trainerStatus": {
            "metrics": [
                {"name": name, "value": value[:MAX_VALUE_LENGTH]} for name, value in metrics.items()
            ],
            "lastUpdatedTime": utc_time,
        }
    }


def post_status(server: TrainerServer, body: Mapping[str, Any]) -> str:
    """Send one report; return the error as a sentence, "" if there was none."""
    begin = "Trainer did not take the status"
    try:
        token = server.token_path.read_text().strip()
        context = ssl.create_default_context(cafile=str(server.ca_path))
    except (OSError, ValueError) as error:
        why = str(getattr(error, "strerror", None) or error).lower()
        return f"{begin}: {why}: {server.ca_path} or {server.token_path}"
    try:
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        request = urllib.request.Request(  # the URL is https, see find_trainer_server
            server.url,
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        )
        opener.open(request, timeout=TIMEOUT_S).close()
    except urllib.error.HTTPError as error:
        error.close()
        return f"{begin}: it answered {error.code}"
    except OSError as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        return f"{begin}: {str(getattr(cause, 'strerror', None) or cause).lower()}"
    except ValueError:  # its text has the token
        return f"{begin}: the token is not one line"
    except http.client.HTTPException:
        return f"{begin}: its answer is no HTTP"
    return ""


class TrainerStatusReporter:
    """Sends the newest report from a thread of its own, so that a slow server delays nothing."""

    def __init__(self, server: TrainerServer) -> None:
        self._server = server
        self._newest: Mapping[str, Any] | None = None
        self._due = threading.Event()
        self._is_closed = False
        self._next_at = 0.0
        self.error = ""
        """Why the last report was not taken, which replaces those before; "" if it was."""
        self._thread = threading.Thread(target=self._run, name="trainer status", daemon=True)
        self._thread.start()

    def is_due(self, now: float) -> bool:
        """Return True if a report may be sent at this time (s, CLOCK_MONOTONIC)."""
        return now >= self._next_at

    def report(self, now: float, body: Mapping[str, Any]) -> None:
        """Send this soon; a report that was not sent yet is replaced."""
        self._next_at = now + INTERVAL_S
        self._newest = body
        self._due.set()

    def close(self, last_report: Mapping[str, Any]) -> None:
        """Send the last report, and wait for that for TIMEOUT_S at most."""
        self._newest, self._is_closed = last_report, True
        self._due.set()
        self._thread.join(TIMEOUT_S)

    def _run(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            is_last, body = self._is_closed, self._newest
            if body is not None:
                self.error = post_status(self._server, body)
            if is_last:
                return
            time.sleep(0.1)  # not in the agent's loop
