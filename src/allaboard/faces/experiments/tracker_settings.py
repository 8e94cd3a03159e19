"""Where scalars and findings of a run go."""

from __future__ import annotations

import msgspec

LAST_WORDS_S = 30.0
"""Seconds in which what happened at the end has to be written; the end of `run` waits for it."""
AUTO = "auto"
"""Value of the options: whatever the script itself uses."""


class TrackerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where scalars and findings go."""

    run_dir: str = ""
    """The run folder."""
    tensorboard: str = ""
    """Folder for TensorBoard's event files; "auto" for the folder in which the script logs, "" for none."""
    trackers: tuple[str, ...] = ()
    """Packages of other trackers that are written to if the script uses them; "auto" for all."""
