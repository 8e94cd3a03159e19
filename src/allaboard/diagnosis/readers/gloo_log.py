"""Messages of gloo, as PyTorch and JAX pass them on."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony

_RECORDED = "recorded, PyTorch 2.13.0; JAX 0.10.2 writes the same"

_LOOPBACK = r"(?:(?:::ffff:)?127\.[\d.]+|::1)"
_REFUSED_SOURCES = (
    "its wording from the source of gloo (transport/tcp/pair.cc), in PyTorch 1.0 to 2.4; PyTorch 1.0 ends "
    "in a "
    "C++ exception (gloo::IoException), later ones raise RuntimeError"
)

MESSAGES = (
    KnownMessage(
        key="gloo/transport/tcp",
        pattern=r"(?:Connection closed by peer|Read error|Connection reset by peer|writev|recv) "
        r"\[(?P<peer>[^\]]+)\](?::(?P<port>\d+))?",
        rule="EXIT005",
        says="the peer at {peer}:{port} went away in the middle of a collective",
        fix="find whose address it is: the rank that does not write this is the one that went",
        proves_not="which rank: gloo knows addresses alone; and not that it crashed before this one did",
        awaits=True,
        sample="[rank0]: RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/"
        "pair.cc:537] Read error [127.0.0.1]:38798: Connection reset by peer. This is typically",
        source=_RECORDED,
    ),
    KnownMessage(
        key="Timed out waiting",
        pattern=r"Timed out waiting (?P<ms>\d+)ms for (?:recv|send) operation to complete",
        rule="LOG001",
        says="a rank waited {ms} ms in a collective for a peer that did not come",
        fix="look at the ranks that do not say this: py-spy dump --pid PID while it hangs, or "
        "allaboard diagnose PID...",
        proves_not="which peer, nor that one died: stopped, slow, in another collective, or gone "
        "home early look the same",
        awaits=True,
        sample="[rank0]: RuntimeError: [/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/"
        "unbound_buffer.cc:78] Timed out waiting 10000ms for recv operation to complete",
        source=_RECORDED,
    ),
    KnownMessage(
        key="Connection refused",
        pattern=rf"(?:pair\.cc:\d+\][^\n]{{0,40}} connect \[(?={_LOOPBACK}\])|"
        rf"Connection refused, remote=\[(?={_LOOPBACK}\]))(?P<peer>[^\]]+)\]:(?P<port>\d+)",
        rule="NET009",
        says="a peer of gloo gave {peer} as its address, which on every host is that host itself: its host's "
        "name resolves to loopback",
        fix="getent ahosts $(hostname)   # on each host; take its name off the line of 127.0.1.1 in "
        "/etc/hosts, "
        "or set GLOO_SOCKET_IFNAME to the interface that the others reach: ip -br address",
        proves_not="which host: it is another than the one that writes this; if all are on one host, the "
        "peer "
        "had ended",
        sample="terminate called after throwing an instance of 'gloo::IoException'\n  what():  [/opt/conda/"
        "third_party/gloo/gloo/transport/tcp/pair.cc:724] connect [127.0.1.1]:3210: Connection refused",
        source=_REFUSED_SOURCES,
    ),
    KnownMessage(
        key="transport/tcp/pair.cc",
        pattern=rf"pair\.cc:\d+\][^\n]{{0,40}} connect \[(?!{_LOOPBACK}\])(?P<peer>[^\]]+)\]:(?P<port>\d+): "
        r"(?P<why>Connection refused|Connection timed out|No route to host|Network is unreachable)",
        rule="JOIN004",
        says="gloo could not connect to a peer at {peer}:{port}: {why}",
        fix="read the log of the rank on {peer}: it may have ended; GLOO_SOCKET_IFNAME chooses the "
        "interface, on each host one that the others reach",
        proves_not="that the peer had ended: an address of a wrong interface looks the same",
        sample="RuntimeError: [/opt/conda/conda-bld/third_party/gloo/gloo/transport/tcp/pair.cc:799] connect "
        "[172.31.71.170]:13195: Connection refused",
        source=_REFUSED_SOURCES,
    ),
    KnownMessage(
        key="connectFullMesh failed",
        pattern=rf"connectFullMesh failed with \[(?![^\n]{{0,300}}\[{_LOOPBACK}\])(?P<what>[^\n]{{0,300}})",
        rule="JOIN004",
        says="gloo could not connect all members to each other",
        fix="every rank must reach every other on all ports above 1024; set GLOO_SOCKET_IFNAME to "
        "the interface that does; with file://, remove the file of the earlier run",
        proves_not="that the peer is gone: its address may be of an earlier run or of loopback",
        sample="RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/"
        "transport/tcp/pair.cc:144] no error: connect: Connection refused",
        source="its wording from the source of PyTorch 2.13.0",
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
