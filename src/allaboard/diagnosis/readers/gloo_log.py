"""Messages of transports between CPUs: gloo, as PyTorch and JAX pass them on, and RPC's TensorPipe."""

from __future__ import annotations

import re

import msgspec

from allaboard.analysis.log_ends.post_traceback_output import has_ended_well, progress_lines
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Testimony, Who

_RECORDED = "recorded, PyTorch 2.13.0; JAX 0.10.2 writes the same"

_LOOPBACK = r"(?:(?:::ffff:)?127\.[\d.]+|::1)"
_REFUSED_SOURCES = (
    "its wording from the source of gloo (transport/tcp/pair.cc), in PyTorch 1.0 to 2.4; PyTorch 1.0 ends in "
    "a C++ exception (gloo::IoException), later ones raise RuntimeError"
)

FALLBACK = KnownMessage(
    key="address as fallback",
    pattern=r"Unable to resolve hostname to a \(local\) address\. ?Using the loopback address as fallback",
    rule="NET009",
    says="a rank fell back to the loopback address for gloo, which no other host reaches: its host's name "
    "does not resolve to an address of its own",
    fix="getent ahosts $(hostname)   # on that host; correct /etc/hosts, or export GLOO_SOCKET_IFNAME=NAME "
    "with the interface that the others reach: ip -br address",
    explains=("JOIN004", "NET009"),
    # On one host it is harmless.
    only_explains=True,
    sample="[rank2]:[W1121 12:29:11.541042612 ProcessGroupGloo.cpp:721] Warning: Unable to resolve hostname "
    "to a (local) address. Using the loopback address as fallback. Manually set the network interface to "
    "bind to with GLOO_SOCKET_IFNAME. (function operator())",
    source="its wording from the source of PyTorch 1.5 to 2.13 (ProcessGroupGloo.cpp)",
)
OWN_LOOPBACK = KnownMessage(
    key="connectFullMesh failed",
    pattern=rf"connectFullMesh failed with \[[^\n]{{0,400}}\(rank=(?P<rank>\d+), size=\d+, "
    rf"local=\[(?P<local>{_LOOPBACK})\]",
    rule="NET009",
    says="gloo of rank {rank} is on {local}, which no other host reaches: the name of its host resolves to "
    "loopback",
    fix="getent ahosts $(hostname)   # on the host of rank {rank}; take its name off the line of 127.0.1.1 "
    "in /etc/hosts, or export GLOO_SOCKET_IFNAME=NAME with the interface that the others reach: ip -br "
    "address",
    explains=("NET009",),
    proves_not="that rank {rank} is the only one; if all are on one host, the peer had ended",
    sample="RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/"
    "pair.cc:152] timed out connecting: SO_ERROR: Connection refused, remote=[127.0.0.1]:20111 (rank=1, "
    "size=2, local=[127.0.0.1])",
    source="its wording from the source of PyTorch 2.6 to 2.13 (gloo's tcp/pair.cc)",
)
RPC_PEER_LOST = KnownMessage(
    key="encountered error when reading incoming re",
    # At the end of a job the others may be gone already, and the message says that it is expected.
    pattern=r"RPC agent for (?P<agent>\S{1,200}) encountered error when reading incoming (?:request"
    r"|response) from (?P<peer>\S{1,200}): (?!transport retry)(?![^\n]*this is expected to happen)",
    rule="EXIT005",
    says="{peer}, a member of torch.distributed.rpc, went away",
    fix="read the log of the process that calls init_rpc with the name {peer}, and its host's kernel log: "
    "dmesg -T | grep -i kill",
    proves_not="that it began there: it may itself have ended because of another",
    sample="[W1126 02:44:09.854223113 tensorpipe_agent.cpp:723] RPC agent for learner encountered error when "
    "reading incoming request from actor1: eof (this error originated at tensorpipe/transport/shm/"
    "connection_impl.cc:259)",
    source="recorded, PyTorch 2.13.0",
)
RPC_LINK_FAILED = KnownMessage(
    key="transport retry counter exceeded",
    pattern=r"RPC agent for \S{1,200} encountered error when \w+ incoming (?:request|response|pipe)"
    r"(?: from (?P<peer>\S{1,200}))?: transport retry counter exceeded",
    rule="EXIT005",
    says="torch.distributed.rpc got no answer from {peer} over InfiniBand: the peer ended, or the cards of "
    "the two hosts do not reach each other",
    fix="ibstat; ibping between the hosts; without InfiniBand: rpc.TensorPipeRpcBackendOptions(_transports="
    "['shm', 'uv'], _channels=['basic']) in every process; else read the log of the process called {peer}",
    proves_not="whether the peer ended or the link broke: the card sees both alike",
    sample="[W tensorpipe_agent.cpp:940] RPC agent for learner encountered error when reading incoming "
    "response from actor1: transport retry counter exceeded (this error originated at tensorpipe/transport/"
    "ibv/connection_impl.cc:478)",
    source="its wording from the source of tensorpipe (transport/ibv), PyTorch 1.8 to 2.5",
)
RPC_WRITER = re.compile(r"RPC agent for (\S{1,200}) encountered")
"""Matches the name of the process that writes it."""
MESSAGES = (
    OWN_LOOPBACK,
    RPC_LINK_FAILED,
    KnownMessage(
        key="gloo/transport/tcp",
        pattern=r"(?:Connection closed by peer|Read error|Connection reset by peer|writev|recv) "
        r"\[(?P<peer>[^\]]+)\](?::(?P<port>\d+))?",
        rule="EXIT005",
        says="a peer at {peer} went away in the middle of a collective",
        fix="find whose address it is: the rank that does not write this is the one that went: read its log",
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
        key="Read timeout [",
        pattern=r"gloo/transport/tcp/buffer\.cc:\d+\] Read timeout "
        r"\[(?P<peer>[^\]\n]{1,60})\]:(?P<port>\d+)",
        rule="LOG001",
        says="a process waited in a collective of gloo for a peer at {peer} that did not come in time",
        fix="look at the processes that do not say this: py-spy dump --pid PID while it hangs, or allaboard "
        "diagnose PID...; gloo's own limit in JAX is 30 s, so let all come to the collective together",
        proves_not="which process, nor that it died: a slow one looks the same",
        awaits=True,
        sample="UNKNOWN: Gloo ReduceScatter failed: [external/gloo/gloo/transport/tcp/buffer.cc:72] Read "
        "timeout [::1]:38624",
        source="its wording from the source of gloo (transport/tcp/buffer.cc), in JAX 0.5 to 0.12",
    ),
    KnownMessage(
        key="Connection refused",
        pattern=rf"(?:pair\.cc:\d+\][^\n]{{0,40}} connect \[(?={_LOOPBACK}\])|"
        rf"Connection refused, remote=\[(?={_LOOPBACK}\]))(?P<peer>[^\]]+)\]:(?P<port>\d+)",
        rule="NET009",
        says="a peer of gloo gave {peer} as its address, which on every host is that host itself: its host's "
        "name resolves to loopback",
        fix="getent ahosts $(hostname)   # on each host; take its name off the line of 127.0.1.1 in "
        "/etc/hosts, or set GLOO_SOCKET_IFNAME to the interface that the others reach: ip -br address",
        proves_not="which host: it is another than the one that writes this; if all are on one host, the "
        "peer had ended",
        sample="terminate called after throwing an instance of 'gloo::IoException'\n  what():  [/opt/conda/"
        "third_party/gloo/gloo/transport/tcp/pair.cc:724] connect [127.0.1.1]:3210: Connection refused",
        source=_REFUSED_SOURCES,
    ),
    KnownMessage(
        key="transport/tcp/pair.cc",
        pattern=rf"pair\.cc:\d+\][^\n]{{0,40}} connect "
        rf"\[(?!{_LOOPBACK}\])(?P<peer>[^\]]+)\]:(?P<port>\d+): "
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
    RPC_PEER_LOST,
    KnownMessage(
        key="op.preamble.length <= op.nbytes",
        pattern=r"op\.preamble\.length <= op\.nbytes\. (?P<came>\d+) vs (?P<want>\d+)",
        rule="LOG003",
        says="a rank got {came} bytes in a collective in which it expected {want}: the ranks called "
        "different collectives, or the same one with other sizes, or count different world sizes",
        fix="let all ranks make the same calls in the same order with the same sizes, and compare the "
        "WORLD_SIZE of all: allaboard run names the rank and both lines",
        proves_not="which rank is wrong; those that write of a lost peer then are its victims",
        explains=("EXIT005", "LOG012"),
        sample="terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce "
        "fail at /__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:456] op.preamble.length "
        "<= op.nbytes. 12 vs 8. Received data size doesn't match expected size. Is there a distributed "
        "collective mismatch in your code?",
        source=_RECORDED,
    ),
    KnownMessage(
        key="failed to pass monitoredBarrier",
        pattern=r"Ranks? (?P<rank>[\d, ]+) failed to pass monitoredBarrier",
        rule="LOG001",
        says="rank {rank} did not come to the monitored barrier",
        fix="look at rank {rank}: its log, or py-spy dump --pid PID while it hangs",
        sample="RuntimeError: Rank 0 in timeout: Ranks 1 failed to pass monitoredBarrier in 5000 ms",
        source="its wording from the source of PyTorch 2.13.0",
    ),
    KnownMessage(
        key="successfully reached monitoredBarrier, but received errors",
        pattern=r"Rank \d+ successfully reached monitoredBarrier, but received errors while waiting for "
        r"send/recv from rank 0",
        rule="LOG001",
        says="ranks came to the monitored barrier, and rank 0 did not let them through",
        fix="read the log of rank 0: it names the ranks that did not come",
        proves_not="that rank 0 is at fault: it ends the barrier where another rank does not come",
        awaits=True,
        explains=("EXIT005",),
        sample="RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while "
        "waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.",
        source="its wording from the source of PyTorch 1.9 to 2.13 (ProcessGroupGloo.cpp), and of torchcomms",
    ),
    KnownMessage(
        key=" timed out in monitoredBarrier after",
        pattern=r"timed out in monitoredBarrier after (?P<ms>\d+) ms\. Successfully processed ranks: "
        r"(?P<came>[\d, ]+)",
        rule="LOG001",
        says="not all ranks came to the monitored barrier within {ms} ms; those that came: {came}",
        fix="look at the ranks that are not among these: their logs, or py-spy dump --pid PID while they "
        "hang",
        awaits=True,
        sample="RuntimeError: Rank 0 timed out in monitoredBarrier after 5000 ms. Successfully processed "
        "ranks: 1, 2",
        source="its wording from the source of PyTorch 1.9 to 2.13 (ProcessGroupGloo.cpp), and of torchcomms",
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    fallback = map(_about_speaker, find_known_messages(exhibit, (FALLBACK,)))
    heard = (*fallback, *find_known_messages(exhibit, MESSAGES))
    later = exhibit.text[exhibit.text.rfind(RPC_PEER_LOST.key) :].split("\n")[1:]
    if has_ended_well(progress_lines(later)):
        heard = tuple(h for h in heard if RPC_PEER_LOST.key not in h.speakers[0].line)
    return Testimony(heard=heard) if heard else None


def _about_speaker(heard: Heard) -> Heard:
    """Return the message with the rank that wrote it as the one that it is about."""
    rank = heard.speakers[0].rank
    if rank < 0:
        return heard
    return msgspec.structs.replace(
        heard,
        says=heard.says.replace("a rank", f"rank {rank}", 1),
        fix=heard.fix.replace("that host", f"the host of rank {rank}", 1),
        about=(Who(index=rank, rank=rank),),
    )


READER = LogReader(read=read_log)
