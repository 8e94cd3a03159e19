"""ALLABOARD=1 under any launcher: imported by `allaboard.pth` at the start of every interpreter.

It only hooks the frameworks, as they are imported. Not before a process calls a distributed init does it
become a member with an agent of its own: launchers, data loaders and tools never do. Roll call and watch
only report.
"""

from __future__ import annotations

import os

from . import bootstrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _attach(declared: dict[str, Any]) -> None:
    if declared.get("world_size", 0) > 1:
        from . import attach  # now, not at the start of every program

        attach.attach(declared, None, watch=True)


if not os.environ.get("ALLABOARD_BOX"):  # under `allaboard run` all of this is done already
    try:
        bootstrap.start(_attach)
    except Exception:
        pass  # whatever is wrong with us, the program must start
