"""The runs of experiment trackers that the probe has noted."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from allaboard.facts import TrackerRun
from allaboard.probe.tracker_runs import NOTE_PREFIX


def tracker_runs(notes: Mapping[str, str]) -> tuple[TrackerRun, ...]:
    """Return the runs; one whose note cannot be read is left out."""
    runs = []
    for key, text in notes.items():
        if key.startswith(NOTE_PREFIX):
            try:
                fields = msgspec.json.decode(text)
                fields["tracker"] = key.removeprefix(NOTE_PREFIX)
                runs.append(msgspec.convert(fields, TrackerRun))
            except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
                continue
    return tuple(runs)
