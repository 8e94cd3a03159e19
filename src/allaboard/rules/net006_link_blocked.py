"""Two hosts cannot connect on the ports that training will use.

## Why it matters
The meeting place is one port on one host; the data flows between all hosts, on ports that gloo and NCCL
pick themselves (TensorFlow: on every task's own port). Where a firewall drops those, every rank hangs in
init or in its first collective, for ever and without a word: the timeout that was given does not apply there.

## What to do
Open TCP on all ports above 1024 between the hosts of a job, both ways, or bind the framework to the
interface of the network that is open (`GLOO_SOCKET_IFNAME`, `NCCL_SOCKET_IFNAME`). The directions that
failed are given.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.crossings import CONNECTS, Fault, failed, faults, four, on
from allaboard.facts import Answer, Certainty, Claim, Evidence, JobView, Link, Stage

WORDS = {
    Answer.REFUSED: "refused",
    Answer.SILENT: "no answer",
    Answer.UNREACHABLE: "unreachable",
    Answer.NO_NAME: "name unknown",
    Answer.CLOSED: "cut off",
    Answer.MUTE: "accepted, then silence",
}


def check(view: JobView) -> Iterator[Claim]:
    tried = [k for k in view.links if not k.address.startswith(("127.", "0.0.0.0", "[::1]"))]
    for fault in faults(tried, CONNECTS):
        yield _claim(view, fault)


def _claim(view: JobView, fault: Fault) -> Claim:
    first = fault.links[0]
    word = WORDS.get(first.answer, "another program answers")
    if fault.host:
        others = sorted({k.source for k in fault.links} | {k.target for k in fault.links})
        others.remove(fault.host)
        what = f"{fault.host} cannot be reached by {', '.join(others[:4])}"
        what += " nor reach them" if fault.both else ""
    else:
        way = f"{first.source} cannot connect to {first.target}"
        what = way + (", nor the other way round" if fault.both else "; the other way it works")
    hosts = (fault.host,) if fault.host else fault.pair
    host, _, port = first.address.rpartition(":")
    return Claim(
        summary=f"{what} on the ports for data: {word}",
        who=on(view, *hosts),
        evidence=tuple(
            Evidence(f"{k.source} to {k.target} at {k.address}: {k.said or k.answer}", "link trial")
            for k in fault.links[:6]
        ),
        fix=f"open TCP on all ports above 1024 between the hosts, both ways; on {first.source}: "
        f"nc -vz -w3 {host} {port}",
        # One way only may be the way that is not needed.
        certainty=Certainty.CERTAIN if fault.both else Certainty.LIKELY,
    )


RULE = Rule(
    stage=Stage.NETWORK,
    reads=JobView,
    check=check,
    fires_on={
        "one host behind a firewall": (
            four(
                *(failed(i, 2, Answer.SILENT) for i in (0, 1, 3)),
                *(failed(2, i, Answer.SILENT) for i in (0, 1, 3)),
            ),
            "h2 cannot be reached by h0, h1, h3 nor reach them on the ports for data: no answer",
        ),
        "one pair": (
            four(failed(1, 3, Answer.REFUSED), failed(3, 1, Answer.REFUSED)),
            "h1 cannot connect to h3, nor the other way round on the ports for data: refused",
        ),
        "one way": (
            four(failed(1, 3, Answer.SILENT)),
            "h1 cannot connect to h3; the other way it works on the ports for data: no answer",
        ),
    },
    silent_on={
        "all is well": four(),
        "bound to loopback is another rule's": four(
            *(
                Link(source=f"h{i}", target="h2", address="127.0.1.1:40000", answer=Answer.REFUSED)
                for i in (0, 1, 3)
            )
        ),
    },
    since="0.1",
    drill=("net-data-ports-dropped", "net-one-way"),
)
