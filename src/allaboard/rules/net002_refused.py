"""The host of the meeting place answers, but nothing listens there.

## Why it matters
"Refused" means that a packet came back: the network works this far. Either the worker that opens the port
(rank 0, the chief, JAX's process 0) has not started, ended before it reached init, or uses another port; or
a firewall rejects the connection.

## What to do
Look at the first worker's log on its own host. If it waits there ("waiting for rank …"), a firewall between
the two hosts refuses: ask for the port to be opened. `nc -vz HOST PORT` reproduces it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.analysis.roll_call.rendezvous_attempt import calling, overdue
from allaboard.contracts import Rule
from allaboard.facts import Answer, Claim, JobView, Stage


def check(view: JobView) -> Iterator[Claim]:
    tried = overdue(view, Answer.REFUSED)
    if tried is None:
        return
    lost = tried.call.shook
    first = (
        f"look at rank 0: is it on {tried.name}, has it started, and does it use port {tried.port}?"
    )
    if "MASTER_PORT" in tried.origin:
        first += " MASTER_PORT must be the same on every host;"
    if not lost:
        first += " if it waits there, a firewall rejects the connection;"
    if tried.numeric.startswith("127.") or tried.numeric == "::1":
        first = (
            f"give the address of rank 0's host, unless it is this one: {tried.name} leads every host "
            "to itself;"
        )
    if tried.origin == "--coordinator":
        first = f"give every host the same --coordinator (ALLABOARD_COORDINATOR), or none; {first}"
    elif tried.origin.startswith("posted"):
        first = "see on rank 0's host why its allaboard ended: it had posted this address;"
    what = "something listened there before, and is gone" if lost else "but nothing listens there"
    yield Claim(
        summary=f"{tried.member.who.host} is refused at {tried.call.address} where all are to meet: "
        f"the host is up, {what}",
        who=(tried.member.who,),
        evidence=tried.evidence,
        fix=f"{first} nc -vz {shlex.quote(tried.name)} {tried.port}",
        since=tried.call.since,
        awaits=True,
    )


RULE = Rule(
    stage=Stage.NETWORK,
    reads=JobView,
    check=check,
    fires_on={
        "rank 0 never came": (
            calling(Answer.REFUSED, said="Connection refused"),
            "a is refused at node0:29500 where all are to meet: the host is up, but nothing listens there",
        ),
        "the roll call was there": (
            calling(Answer.REFUSED, said="Connection refused", shook=True),
            "a is refused at node0:29500 where all are to meet: the host is up, "
            "something listened there before, and is gone",
        ),
    },
    silent_on={
        "a server, up long before the others": calling(Answer.REFUSED, 600.0, serves=True),
        "there is time left": calling(Answer.REFUSED, 30.0, "Connection refused"),
        "silence": calling(Answer.SILENT),
    },
    since="0.1",
    drill=("net-first-absent", "net-rejected"),
)
