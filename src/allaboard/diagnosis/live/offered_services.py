"""Services that the examined processes offer themselves, which know more than is seen from outside. Pure.

They are recognised by their usual ports and are not asked here: the user's command does that.
"""

from __future__ import annotations

from collections.abc import Sequence

from allaboard.diagnosis.live.endpoint_answers import RAS_PORT
from allaboard.facts import Address, Present

DEBUG_SERVER_PORT = 25999
"""Port of PyTorch's debug server on rank 0 (``start_debug_server`` in torch/distributed/debug)."""
_SERVICES = (
    (RAS_PORT, "NCCL's service", "ras"),
    (DEBUG_SERVER_PORT, "PyTorch's debug server", "http"),
)
_LOOPBACK = "127.0.0.1"


def service_lines(ranks: Sequence[Present], host: str) -> list[str]:
    """Return a sentence for each such service, with the command that asks it; ``host`` is this one."""
    lines = []
    for port, name, scheme in _SERVICES:
        listening = [p for p in ranks if _listens(p, port)]
        for of_host in dict.fromkeys(p.member.who.host for p in listening):
            first = next(p for p in listening if p.member.who.host == of_host)
            address = Address(_LOOPBACK if of_host == host else of_host, str(port))
            lines.append(
                f"{first.member.who.name} offers {name}; to ask it too: allaboard diagnose "
                f"{scheme}://{address}"
            )
    return lines


def _listens(process: Present, port: int) -> bool:
    return any(
        s.state == "LISTEN" and Address.from_endpoint(s.local).port == str(port)
        for s in process.sockets
    )
