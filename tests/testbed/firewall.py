"""What a host's firewall does to packets, and its nft text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

VERDICTS = {
    "drop": "drop",
    "reset": "reject with tcp reset",
    "unreachable": "reject with icmp type admin-prohibited",
}
CLEAR = "add table inet bed\ndelete table inet bed\n"
_CHAINS = """\
add table inet bed
add chain inet bed in { type filter hook input priority 0 ; policy accept ; }
add chain inet bed out { type filter hook output priority 0 ; policy accept ; }
"""


@dataclass(frozen=True, kw_only=True)
class Block:
    """TCP packets that a host's firewall stops. The host's own loopback always passes.

    Attributes:
        verdict: "drop" (the sender hears nothing), "reset" (it is refused), "unreachable" (it gets
            "no route to host").
        way: packets that come in, go out, or both.
        peer: only those of this host (its name).
        ports: only those to these ports.
        but: all but those of connections to or from these ports.
        new: only the first packets of connections: one side may open them, the other not.
        established: only what follows the first packets: a connection opens, and is dead.
        larger: only packets of more bytes than this: an MTU black hole.
        after: only once so many bytes have passed: a link that falls silent.
    """

    verdict: Literal["drop", "reset", "unreachable"] = "drop"
    way: Literal["in", "out", "both"] = "in"
    peer: str = ""
    ports: tuple[int, ...] = ()
    but: tuple[int, ...] = ()
    new: bool = False
    established: bool = False
    larger: int = 0
    after: int = 0


def script(block: Block, address: str = "") -> str:
    """The nft script that adds this block; ``address`` is the peer's."""
    rules = [
        f"add rule inet bed {chain} {match} {VERDICTS[block.verdict]}\n"
        for chain, match in _matches(block, address)
    ]
    return _CHAINS + "".join(rules)


def _matches(block: Block, address: str) -> Iterator[tuple[str, str]]:
    for chain, device, end in (("in", "iifname", "saddr"), ("out", "oifname", "daddr")):
        if block.way not in (chain, "both"):
            continue
        words = [f'{device} "eth0" meta l4proto tcp']
        if address:
            words.append(f"ip {end} {address}")
        if block.ports:
            words.append(f"tcp dport {_set(block.ports)}")
        if block.but:
            # Of two single ports nft 1.0.6 makes one comparison, true where either differs; of sets
            # it does not. There is no port 0.
            but = _set((0, *block.but))
            words.append(f"tcp dport != {but} tcp sport != {but}")
        if block.new:
            words.append("ct state new")
        if block.established:
            words.append("ct state established")
        if block.larger:
            words.append(f"ip length > {block.larger}")
        if block.after:
            words.append(f"quota over {block.after} bytes")
        yield chain, " ".join(words)


def _set(ports: tuple[int, ...]) -> str:
    return "{ " + ", ".join(str(p) for p in ports) + " }"
