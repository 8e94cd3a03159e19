"""Addresses that are translated on their way (NAT), as a router, a container's published port or a virtual
address of a cluster does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from testbed import links

if TYPE_CHECKING:
    from testbed import Bed

_CHAIN = """\
add table ip translation
add chain ip translation out { type nat hook output priority -100 ; }
"""


def translate(bed: Bed, public: str, host: str, ports: Mapping[int, int] = {}) -> None:
    """Lets every host reach ``host`` under the address ``public``, which no interface has.

    ``ports`` are those that are translated, too: the port that is called to the one that is reached.
    """
    private = bed.addresses[host]
    rules = [
        f"add rule ip translation out ip daddr {public} tcp dport {outer} dnat to {private}:{inner}\n"
        for outer, inner in ports.items()
    ]
    rules.append(f"add rule ip translation out ip daddr {public} dnat to {private}\n")
    for each in bed.hosts:
        bed.run(each, "ip", "route", "add", f"{public}/32", "dev", "eth0")
        links.inside(bed.first(each), ["nft", "-f", "-"], _CHAIN + "".join(rules))
