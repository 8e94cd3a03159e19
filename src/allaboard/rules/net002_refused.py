"""The host of the rendezvous address answers, but nothing listens on its port.

## Why it matters
"Connection refused" means that a packet came back: the network works. Either the worker that opens the port
(rank 0, the chief, JAX's process 0) has not started, exited before it reached init, or uses another port; or
a firewall rejects the connection.

## What to do
Look at the first worker's log on its own host. If it waits there ("waiting for rank …"), a firewall between
the two hosts rejects the connection: have the port opened. `nc -vz HOST PORT` reproduces it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.analysis.roll_call.absent_first import describe_absent_first
from allaboard.analysis.roll_call.first_member import start_advice, who_is_first
from allaboard.analysis.roll_call.rendezvous_attempt import (
    RendezvousAttempt,
    example_attempt,
    find_overdue_attempt,
)
from allaboard.contracts import Rule
from allaboard.facts import Answer, Claim, Declared, Evidence, JobView


def check(view: JobView) -> Iterator[Claim]:
    tried = find_overdue_attempt(view, Answer.REFUSED)
    if tried is None:
        return
    was_reachable = tried.call.shook
    declared = tried.member.declared
    if declared is not None and tried.is_first_members_own:
        yield _claim_not_started(tried, declared)
        return
    advice = (
        f"check that rank 0 runs on {tried.host_name}, has started, and uses port {tried.port};"
    )
    if "MASTER_PORT" in tried.origin:
        advice += " MASTER_PORT must be the same on all hosts;"
    if not was_reachable:
        advice += " if it waits there, a firewall rejects the connection;"
    if tried.resolved_host.startswith("127.") or tried.resolved_host == "::1":
        advice = (
            f"use the address of rank 0's host, unless it is this host: with {tried.host_name} "
            "every host connects to itself;"
        )
    if tried.origin == "--coordinator":
        advice = f"give all hosts the same --coordinator (ALLABOARD_COORDINATOR), or none; {advice}"
    elif tried.is_published:
        advice = "see why allaboard exited on the host that had published this address;"
    state = "what listened there has stopped" if was_reachable else "nothing listens on that port"
    yield Claim(
        summary=f"{tried.member.who.host} cannot connect to the rendezvous address {tried.call.address}: "
        f"connection refused (the host is up, but {state})",
        who=(tried.member.who,),
        evidence=tried.evidence,
        fix=f"{advice} nc -vz {shlex.quote(tried.host_name)} {tried.port}",
        since=tried.call.since,
        awaits=True,
    )


def _claim_not_started(tried: RendezvousAttempt, declared: Declared) -> Claim:
    """Report the first member: its host answers, and nothing listens where the member would."""
    call, host = tried.call, tried.member.who.host
    is_own_host = tried.resolved_host.startswith("127.") or tried.resolved_host == "::1"
    doubts = (
        f"if its host is another one than {host}, use that one's address instead of {tried.host_name}"
        if is_own_host
        else f"if it waits there, a firewall rejects port {tried.port}"
    )
    waits_forever = (
        (Evidence("TensorFlow itself waits for ever", "its own timeout"),)
        if declared.framework == "tensorflow"
        else ()
    )
    return Claim(
        summary=describe_absent_first(tried, declared),
        who=(who_is_first(declared),),
        evidence=(*tried.evidence, *waits_forever),
        fix=f"on {tried.host_name}: {start_advice(declared, call.address)}; {doubts}",
        since=call.since,
        awaits=True,
    )


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "rank 0's port has refused connections beyond the timeout": (
            example_attempt(Answer.REFUSED, said="Connection refused"),
            "rank 0 (node0:29500) has not started, as far as a can see: connection refused (its host is "
            "up, but nothing listens there)",
        ),
        "connections are refused where the roll call was reachable before": (
            example_attempt(Answer.REFUSED, said="Connection refused", shook=True),
            "a cannot connect to the rendezvous address node0:29500: connection refused (the host is up, "
            "but what listened there has stopped)",
        ),
    },
    silent_on={
        "a parameter server, which may be up long before the others": example_attempt(
            Answer.REFUSED, 600.0, serves=True
        ),
        "connections have been refused for 30 seconds, less than the timeout": example_attempt(
            Answer.REFUSED, 30.0, "Connection refused"
        ),
        "the host does not answer at all, which NET003 reports": example_attempt(Answer.SILENT),
    },
    drill=("net-first-absent", "net-rejected"),
)
