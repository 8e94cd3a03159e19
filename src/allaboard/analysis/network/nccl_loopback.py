"""Connections of NCCL to a loopback address, which is what a peer on another host gave as its own. Pure."""

from __future__ import annotations

import re

import msgspec

from allaboard.facts import Heard

_LOOPBACK_PEER = re.compile(
    r"could not connect to (?:::ffff:)?(?:127\.[\d.]+|::1|localhost)(?=[,:%\s])"
)
_TOLD_LOOPBACK = re.compile(
    r"NCCL_SOCKET_IFNAME set (?:by environment )?to (?P<value>=?lo\b[^\n]{0,40})"
    r"|(?:Bootstrap ?:|NET/Socket ?:) Using \[?\d?\]?(?P<used>lo):127\."
)
"""Matches NCCL's INFO lines on the interface that it was told to use, or that it uses."""


def as_loopback(heard: Heard, text: str, rule: str) -> Heard:
    """Return a connection to a loopback address that failed as what it means: the peer gave this address.

    ``text`` is what the process wrote, ``rule`` the code of what the message then means.
    """
    if not _LOOPBACK_PEER.search(heard.says):
        return heard
    choice = _TOLD_LOOPBACK.search(text)
    if choice is not None and choice["value"]:
        cause = f"NCCL was told to use lo (NCCL_SOCKET_IFNAME={choice['value'].strip()})"
        fix = (
            "unset NCCL_SOCKET_IFNAME   # on all hosts (also in /etc/nccl.conf, ~/.nccl.conf); or export "
            "NCCL_SOCKET_IFNAME=NAME "
        )
    elif choice is not None:
        cause = "NCCL uses lo: it found no other interface on this host"
        fix = "export NCCL_SOCKET_IFNAME=NAME   # on each host, "
    else:
        cause = "a peer of NCCL gave a loopback address as its own"
        fix = "export NCCL_SOCKET_IFNAME=NAME   # on each host, "
    return msgspec.structs.replace(
        heard,
        rule=rule,
        says=f"{cause}, which on every host is that host itself",
        fix=f"{fix}with the interface that the others reach: ip -br address",
        explains=(heard.rule,),
        proves_not="which host's: if all ranks are on one host, the peer had ended",
    )
