"""What this worker had imported by its first step, for the processes that stand by to take its place.

Kept only where the agent keeps such processes (ALLABOARD_STANDBY). Costs a copy of the environment at the
start, and some milliseconds at the first step; nothing after it.
"""

from __future__ import annotations

import json
import os
import sys

from .layout import IMPORTS_PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    Changes = dict[str, Optional[str]]


class ImportRecord:
    """Notes the environment before and after the first framework is imported, and writes the modules.

    A standby process sets what the script had changed before that import, since frameworks read variables
    while they are imported. What was changed later is written too: a module that is imported then may have
    done it, or the script, for such a module to read.
    """

    def __init__(self) -> None:
        self._at_start: dict[str, str] | None = None
        self._changes: Changes | None = None
        self._after: dict[str, str] | None = None
        self._early_count = 0

    def begin(self) -> None:
        """Note the environment that this worker was given."""
        if os.environ.get("ALLABOARD_STANDBY"):
            self._at_start = dict(os.environ)

    def before_framework(self) -> None:
        """Note what the script has changed, the first time."""
        if self._at_start is not None and self._changes is None:
            self._changes = _changed(self._at_start, dict(os.environ))

    def after_framework(self) -> None:
        """Note what stands in the environment and is imported, the first time."""
        if self._changes is not None and self._after is None:
            self._after = dict(os.environ)
            self._early_count = len(sys.modules)

    def write(self, folder: str, worker: int) -> None:
        """Write the record, once; silent where there is no room."""
        after, self._after = self._after, None
        if after is None:
            return
        record = {
            "environment": self._changes,
            "modules": loaded_modules(),
            "early": self._early_count,
            "later": _changed(after, dict(os.environ)),
        }
        path = os.path.join(folder, IMPORTS_PREFIX + str(worker))
        try:
            with open(path + ".new", "w") as file:
                json.dump(record, file)
            os.rename(path + ".new", path)
        except (OSError, ValueError):
            pass


def loaded_modules() -> list[list[str | None]]:
    """Return name and file of every module, in the order in which their imports began."""
    return [[name, file_of(module)] for name, module in list(sys.modules.items())]


def file_of(module: Any) -> str | None:
    """Return a module's file. Its own ``__getattr__`` is not called: it may import more."""
    attributes = getattr(module, "__dict__", None)
    file = attributes.get("__file__") if isinstance(attributes, dict) else None
    return file if isinstance(file, str) else None


def _changed(before: dict[str, str], now: dict[str, str]) -> Changes:
    changes: Changes = {n: v for n, v in now.items() if before.get(n) != v}
    changes.update({n: None for n in before if n not in now})
    return changes


here = ImportRecord()
