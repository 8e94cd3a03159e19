"""Two hosts cannot connect to each other on the ports that training will use.

## Why it matters
The rendezvous uses one port on one host. The data flows between all hosts, on ports that gloo and NCCL pick
themselves (TensorFlow: on every task's own port). If a firewall drops that traffic, every rank hangs in init
or in its first collective, forever and without a message: your timeout does not apply there.

A connection that fails is tried once more; the finding is `certain` if both trials failed in both directions.

## What to do
Open TCP on all ports above 1024 between the hosts of a job, in both directions. Or bind the framework to the
interface of the network that is open (`GLOO_SOCKET_IFNAME`, `NCCL_SOCKET_IFNAME`). The finding gives the
directions that failed.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.network.link_faults import (
    NO_CONNECTION_ANSWERS,
    LinkFault,
    example_failed_link,
    example_four_hosts,
    example_host_member,
    example_hosts_with,
    find_link_faults,
    members_on_hosts,
)
from allaboard.contracts import Rule
from allaboard.facts import Address, Answer, Certainty, Claim, Evidence, JobView, Link, Severity

SYMPTOM = {
    Answer.REFUSED: "refused",
    Answer.SILENT: "no answer",
    Answer.UNREACHABLE: "unreachable",
    Answer.NO_NAME: "unknown host name",
    Answer.CLOSED: "connection closed",
    Answer.MUTE: "accepted, then silence",
}
"""Description of each way in which a connection fails."""

OTHER_BACKEND = (
    "the address that gloo uses was tried; this job's backend chooses its own address "
    "(NCCL_SOCKET_IFNAME)"
)
"""Evidence that the trial may not concern a job whose backend is not gloo."""


def check(view: JobView) -> Iterator[Claim]:
    tried = [k for k in view.links if not k.address.startswith(("127.", "0.0.0.0", "[::1]"))]
    for fault in find_link_faults(tried, NO_CONNECTION_ANSWERS):
        yield _claim(view, fault)


def _claim(view: JobView, fault: LinkFault) -> Claim:
    first_link = fault.links[0]
    symptom = SYMPTOM.get(first_link.answer, "another program answers")
    if fault.partitions:
        return _claim_groups(view, fault, symptom)
    if fault.host:
        peers = sorted({k.source for k in fault.links} | {k.target for k in fault.links})
        peers.remove(fault.host)
        named = ", ".join(peers[:4]) + (f" and {len(peers) - 4} more" if len(peers) > 4 else "")
        failure = f"{fault.host} cannot {'reach' if fault.only_outward_fails else 'be reached by'} {named}"
        failure += " and cannot reach them" if fault.both_directions else ""
    else:
        direction = f"{first_link.source} cannot connect to {first_link.target}"
        opposite = (
            " (nor in the other direction)"
            if fault.both_directions
            else " (the other direction works)"
        )
        failure = direction + (opposite if fault.directions_tried > 1 else "")
    hosts = (fault.host,) if fault.host else fault.pair
    chosen, fix = _chosen_interface(view, fault), _advise_open_ports(view, first_link)
    if chosen:
        name = chosen.partition("=")[2]
        fix = (
            f"on {fault.host}: ip -br addr   # then set it to the interface that the others reach, not "
            f"{name}"
        )
    doubt = _backend_doubt(view)
    return Claim(
        summary=f"{failure} on the data ports: {symptom}",
        who=members_on_hosts(view, *hosts),
        evidence=(
            *((Evidence(chosen, f"environment of {fault.host}"),) if chosen else ()),
            *(
                Evidence(f"{k.source} to {k.target} at {k.address}: {k.description}", "link trial")
                for k in fault.links[:6]
            ),
            *doubt,
        ),
        fix=fix,
        severity=Severity.WARNING if doubt else Severity.ERROR,
        certainty=_certainty(fault, bool(doubt)),
    )


def _certainty(fault: LinkFault, doubt: bool) -> Certainty:
    """Return CERTAIN only if both trials failed in both directions: one direction may not be needed, and one
    failed trial may be a momentary problem."""
    sure = fault.both_directions and fault.is_lasting and not doubt
    return Certainty.CERTAIN if sure else Certainty.LIKELY


def _backend_doubt(view: JobView) -> tuple[Evidence, ...]:
    """Return evidence against the fault if all members declared a backend and none of them is gloo."""
    named = [m.declared.backend if m.declared else "" for m in view.members]
    is_other_backend = bool(named) and all(
        b and b != "undefined" and "gloo" not in b for b in named
    )
    return (Evidence(OTHER_BACKEND, "link trial"),) if is_other_backend else ()


def _advise_open_ports(view: JobView, link: Link) -> str:
    """Return the ports to open, and the command that reproduces the failure."""
    host, port = Address.from_endpoint(link.address)[:2]
    listed = {a for m in view.members if m.declared for a in m.declared.cluster.values()}
    ports = (
        "the port of each task in the cluster" if link.address in listed else "all ports above 1024"
    )
    return (
        f"open TCP on {ports} between the hosts in both directions; on {link.source}: "
        f"nc -vz -w3 {host} {port}"
    )


def _chosen_interface(view: JobView, fault: LinkFault) -> str:
    """Return the variable by which the unreachable host chose its address, as NAME=VALUE, or ""."""
    facts = (m.facts for m in view.members if fault.host and m.who.host == fault.host)
    origins = (f.get("data interface", "") for f in facts)
    return next((o for o in origins if o.startswith("GLOO_SOCKET_IFNAME=")), "")


def _claim_groups(view: JobView, fault: LinkFault, symptom: str) -> Claim:
    named = [", ".join(part[:4]) + ("…" if len(part) > 4 else "") for part in fault.partitions]
    first_link = fault.links[0]
    host, port = Address.from_endpoint(first_link.address)[:2]
    doubt = _backend_doubt(view)
    return Claim(
        summary=f"the hosts form {len(named)} groups that cannot reach each other on the data ports: "
        f"{' | '.join(named[:4])} ({symptom})",
        # The smaller group is the one that is cut off.
        who=members_on_hosts(view, *fault.partitions[-1]),
        evidence=(
            *(
                Evidence(f"{k.source} to {k.target} at {k.address}: {k.description}", "link trial")
                for k in fault.links[:6]
            ),
            *doubt,
        ),
        severity=Severity.WARNING if doubt else Severity.ERROR,
        certainty=_certainty(fault, bool(doubt)),
        fix=f"compare the networks of {fault.partitions[0][0]} and {fault.partitions[-1][0]} (ip -br addr; "
        f"ip route), and look for a firewall between them; on {first_link.source}: nc -vz -w3 {host} {port}",
    )


def _unused_interface_view() -> JobView:
    """Return a view in which h2 is set to use the bridge of its containers."""
    wrong = (
        example_failed_link(i, 2, Answer.UNREACHABLE, "Network is unreachable") for i in (0, 1, 3)
    )
    facts = {"data address": "172.17.0.1", "data interface": "GLOO_SOCKET_IFNAME=docker0"}
    return example_hosts_with(example_host_member(2, facts=facts), *wrong)


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a firewall around one of four hosts drops packets in both directions": (
            example_four_hosts(
                *(example_failed_link(i, 2, Answer.SILENT) for i in (0, 1, 3)),
                *(example_failed_link(2, i, Answer.SILENT) for i in (0, 1, 3)),
            ),
            "h2 cannot be reached by h0, h1, h3 and cannot reach them on the data ports: no answer",
        ),
        "one host uses an interface that reaches no other host": (
            _unused_interface_view(),
            "h2 cannot be reached by h0, h1, h3 on the data ports: unreachable",
        ),
        "the hosts of one pair refuse each other's connections": (
            example_four_hosts(
                example_failed_link(1, 3, Answer.REFUSED), example_failed_link(3, 1, Answer.REFUSED)
            ),
            "h1 cannot connect to h3 (nor in the other direction) on the data ports: refused",
        ),
        "one host reaches no other, but the others reach it": (
            example_four_hosts(*(example_failed_link(2, i, Answer.SILENT) for i in (0, 1, 3))),
            "h2 cannot reach h0, h1, h3 on the data ports: no answer",
        ),
        "two groups of hosts that do not reach each other": (
            example_four_hosts(
                *(example_failed_link(a, b, Answer.SILENT) for a in (0, 1) for b in (2, 3)),
                *(example_failed_link(b, a, Answer.SILENT) for a in (0, 1) for b in (2, 3)),
            ),
            "the hosts form 2 groups that cannot reach each other on the data ports: h0, h1 | h2, h3 (no "
            "answer)",
        ),
        "one host does not reach another, which reaches it": (
            example_four_hosts(example_failed_link(1, 3, Answer.SILENT)),
            "h1 cannot connect to h3 (the other direction works) on the data ports: no answer",
        ),
    },
    silent_on={
        "all hosts reach each other": example_four_hosts(),
        "one host advertises a loopback address, which NET009 reports at the start": example_four_hosts(
            *(
                Link(source=f"h{i}", target="h2", address="127.0.1.1:40000", answer=Answer.REFUSED)
                for i in (0, 1, 3)
            )
        ),
    },
    drill=(
        "net-data-ports-dropped",
        "net-one-way",
        "one-way-needed",
        "one-way-needed-jax",
        "one-way-not-needed",
        "one-way-tensorflow",
        "one-way-rejected-tensorflow",
        "net-idle-interface",
        "net-dropped-both-tensorflow",
        "net-dropped-both-jax",
    ),
)
