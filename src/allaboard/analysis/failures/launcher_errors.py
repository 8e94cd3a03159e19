"""Exceptions of launchers: they report how a child ended, and are no failure of a rank."""

from __future__ import annotations

import re

from allaboard.formats.dumps.python_tracebacks import Traceback

CHILD_ERRORS = ("CalledProcessError",)
"""Exceptions of Python's subprocess about the end of a child."""
_LAUNCHER_FILES = re.compile(
    r"[/\\](?:torch[/\\]distributed[/\\](?:launch|run|launcher[/\\]\w+)|accelerate[/\\]commands[/\\]\w+"
    r"|deepspeed[/\\]launcher[/\\]\w+|horovod[/\\]run(?:ner)?[/\\][\w/\\]+|torch_xla[/\\]distributed[/\\]\w+)"
    r"\.py$|[/\\]bin[/\\](?:accelerate|deepspeed|horovodrun|torchrun)$"
)


def is_launcher_child_error(traceback: Traceback) -> bool:
    """Return True if a launcher raised it because the command that it had started failed."""
    if traceback.type not in CHILD_ERRORS:
        return False
    return any(_LAUNCHER_FILES.search(frame.file) for frame in traceback.frames)
