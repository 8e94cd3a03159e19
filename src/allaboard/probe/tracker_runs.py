"""Runs of experiment trackers (wandb, MLflow, trackio) that the program has opened. They are looked at once,
at the first step; nothing of them is replaced, and nothing is logged. Tried on the versions named below."""

from __future__ import annotations

import json
import sys

from .signal_errors import reraise_from_handler
from .text_records import MAX_WORD_LENGTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NOTE_PREFIX = "tracker "
"""Begins the name of a note; the tracker follows. Its value is JSON, so that a note cut short is noticed."""


def open_runs() -> dict[str, str]:
    """Return a note for each tracker in which this process has a run. Never raises."""
    notes = {}
    for tracker, read in _READERS.items():
        module = sys.modules.get(tracker)
        if module is None:
            continue
        try:
            run = read(module)
        except Exception as error:
            reraise_from_handler(error)
            continue  # another version keeps it elsewhere
        text = _fitting(run) if run else ""
        if text:
            notes[NOTE_PREFIX + tracker] = text
    return notes


def _fitting(run: dict[str, Any]) -> str:
    """Return the run as JSON that fits a note, without its name if need be; "" if it does not fit."""
    given = {key: value for key, value in run.items() if value not in (None, "", False)}
    for left_out in ((), ("name",), ("name", "group")):
        kept = {key: value for key, value in given.items() if key not in left_out}
        text = json.dumps(kept, default=str, separators=(",", ":"))
        if len(text) <= MAX_WORD_LENGTH:
            return text
    return ""


def _wandb(module: Any) -> dict[str, Any]:
    """wandb 0.31: ``wandb.run`` is the run of this process."""
    run = module.run
    settings = getattr(run, "_settings", None)
    mode = getattr(settings, "mode", None)
    if settings is None or mode == "disabled":
        return {}
    return {
        "id": settings.run_id,
        "project": settings.project,
        "entity": settings.entity,
        "group": settings.run_group,
        "name": settings.run_name,
        "offline": mode in ("offline", "dryrun"),
    }


def _mlflow(module: Any) -> dict[str, Any]:
    """MLflow 3.17: the active run of this thread."""
    run = module.active_run()
    if run is None:
        return {}
    return {
        "id": run.info.run_id,
        "project": run.info.experiment_id,
        "name": run.info.run_name,
        "uri": _without_password(module.get_tracking_uri()),
    }


def _trackio(module: Any) -> dict[str, Any]:
    """trackio 0.43: a context variable holds the run."""
    run = module.context_vars.current_run.get()
    if run is None:
        return {}
    return {
        "project": run.project,
        "group": run.group,
        "name": run.name,
        "uri": getattr(run, "_space_id", None),
    }


def _without_password(uri: str) -> str:
    scheme, separator, rest = uri.partition("://")
    host, slash, path = rest.partition("/")
    return scheme + separator + host.rpartition("@")[2] + slash + path


_READERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "wandb": _wandb,
    "mlflow": _mlflow,
    "trackio": _trackio,
}
