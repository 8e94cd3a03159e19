"""Known messages of NCCL about what its environment lets it use: networks, plugins, interfaces.

Each is read together with the lines of NCCL_DEBUG=INFO before it, which hold the reason.
"""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage
from allaboard.diagnosis.wordings.nccl_network_messages import RECORDED

_NO_PLUGIN = r".{0,900}?NCCL WARN Failed to initialize any NET plugin"
"""What NCCL writes once none of the networks that it may use has worked, some lines after the reason."""


def _no_network(key: str, pattern: str, says: str, fix: str, lines: str) -> KnownMessage:
    """Return the message of one reason for which NCCL could use none of the networks that it was allowed."""
    return KnownMessage(
        key=key,
        pattern=pattern,
        rule="LOG005",
        says=f"NCCL may use no network that works here: {says}",
        fix=fix,
        explains=("EXIT005", "LOG005", "LOG010"),
        sample=lines
        + "\nvm:9:9 [0] plugin/net.cc:379 NCCL WARN Failed to initialize any NET plugin",
        source=RECORDED,
    )


START_MESSAGES = (
    _no_network(
        key="NET/IB : No device found",
        pattern=r"NET/IB : No device found" + _NO_PLUGIN,
        says="it was to use InfiniBand alone (NCCL_NET), and this host has no InfiniBand device",
        fix="echo $NCCL_NET; ls /sys/class/infiniband; ibv_devinfo   # on this host: no device? unset "
        "NCCL_NET (NCCL then takes sockets), or give the container /dev/infiniband",
        lines="vm:9:9 [0] NCCL INFO NET/IB : No device found.\nvm:9:9 [0] NCCL INFO Failed to initialize NET "
        "plugin IB",
    ),
    _no_network(
        key="NCCL_NET_PLUGIN set by environment to ",
        pattern=r"NCCL_NET_PLUGIN set by environment to (?P<name>[\w./-]{1,80})"
        r"\n[^\n]{0,80}NET/Plugin: Could not find: (?P<tried>[^\n]{1,200})" + _NO_PLUGIN,
        says="the plugin of NCCL_NET_PLUGIN={name} is not there ({tried}), and NCCL_NET allows no other",
        fix="ldconfig -p | grep nccl-net; echo $LD_LIBRARY_PATH $NCCL_NET   # in the job, on this host: "
        "add the plugin's folder to LD_LIBRARY_PATH, or unset NCCL_NET_PLUGIN and NCCL_NET",
        lines="vm:9:9 [0] NCCL INFO NCCL_NET_PLUGIN set by environment to ofi\nvm:9:9 [0] NCCL INFO "
        "NET/Plugin: Could not find: ofi libnccl-net-ofi.so",
    ),
    KnownMessage(
        key="Failed to initialize any NET plugin",
        pattern=r"NCCL WARN Failed to initialize any NET plugin",
        rule="LOG005",
        says="NCCL may use no network that works here",
        fix="env | grep NCCL_   # on this host: NCCL_NET, NCCL_NET_PLUGIN and NCCL_IB_HCA name networks "
        "that it must have; unset them for one run. NCCL_DEBUG=INFO tells why each of them failed",
        explains=("EXIT005", "LOG010"),
        sample="vm:9:9 [0] plugin/net.cc:379 NCCL WARN Failed to initialize any NET plugin",
        source=RECORDED,
    ),
    KnownMessage(
        key="NCCL_SOCKET_IFNAME set by environment to ",
        pattern=r"NCCL_SOCKET_IFNAME set by environment to (?P<name>[^\s]{1,80})\n.{0,300}?(?:Bootstrap|"
        r"NET/Socket) : no socket interface found",
        rule="LOG005",
        says="NCCL found no network interface to use: NCCL_SOCKET_IFNAME={name} matches none of this host",
        fix="ip -br address   # on this host: NCCL_SOCKET_IFNAME must name one of these, the one that "
        "reaches the others; unset it to let NCCL choose",
        explains=("EXIT005", "LOG005", "LOG010"),
        sample="vm:9:9 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to ib9\n\nvm:9:9 [0] "
        "bootstrap.cc:114 NCCL WARN Bootstrap : no socket interface found",
        source=RECORDED,
    ),
)
