"""What the keeper of a bed is asked for."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, kw_only=True)
class Order:
    """What to hold: ``names`` of hosts, the text of their /etc/hosts, how long each has been up
    already (s), for how long (s), on whose behalf (pid), and the folder to remove at the end."""

    names: list[str]
    hosts_file: str
    uptimes: list[float]
    lifetime: float
    owner: int
    folder: str

    def text(self) -> str:
        return json.dumps(asdict(self))
