"""Rank 0 has not joined at the shared file or store where this host looks for it.

## Why it matters
With a file:// rendezvous the ranks find each other only through one file. If its folder is a local disk on
this host and a shared one on the others, the rank waits forever without a message: as far as PyTorch can see,
no other rank has joined yet. Under torchrun, the launcher's store is read, and rank 0 has not joined there.

## What to do
Check whether rank 0 has started and reached init. If it has, compare the output of `findmnt -T FOLDER` on its
host and on this one: both must show the same shared disk.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from allaboard.analysis.roll_call.rendezvous_attempt import example_attempt, find_overdue_attempt
from allaboard.contracts import Rule
from allaboard.facts import Answer, Claim, Evidence, JobView


def check(view: JobView) -> Iterator[Claim]:
    tried = find_overdue_attempt(view, Answer.UNPOSTED)
    if tried is None:
        return
    declaration, host = tried.member.declared, tried.member.who.host
    rendezvous = declaration.place if declaration is not None else ""
    shared = rendezvous.startswith("file://")
    folder = shlex.quote(rendezvous.removeprefix("file://").rpartition("/")[0] or "/")
    either = f", or {host} does not share that folder with it" if shared else ""
    yield Claim(
        summary=f"rank 0 has not joined at {rendezvous}{either}",
        who=(tried.member.who,),
        evidence=(
            Evidence(f"{tried.call.said}, looked for {tried.call.tries} times", host),
            Evidence(rendezvous, declaration.origin if declaration is not None else ""),
        ),
        fix=f"on {host} and on the host of rank 0: findmnt -T {folder}   # the same disk?"
        if shared
        else "check on the host of rank 0 whether it has started",
        since=tried.call.since,
        awaits=True,
    )


def _view(rendezvous: str, waited: float) -> JobView:
    view = example_attempt(Answer.UNPOSTED, waited, "no file /shared/meeting.allaboard")
    (member,) = view.members
    assert member.declared is not None
    declaration = msgspec.structs.replace(member.declared, place=rendezvous)
    return msgspec.structs.replace(
        view, members=(msgspec.structs.replace(member, declared=declaration),)
    )


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "rank 0 has not joined at the rendezvous file within the timeout": (
            _view("file:///shared/meeting", 61.0),
            "rank 0 has not joined at file:///shared/meeting, or a does not share that folder with it",
        ),
        "rank 0 has not joined at torchrun's store within the timeout": (
            _view("tcp://node0:29500", 61.0),
            "rank 0 has not joined at tcp://node0:29500",
        ),
    },
    silent_on={
        (
            "rank 0 has been awaited at the rendezvous file for 30 seconds, less than the timeout"
        ): _view("file:///shared/meeting", 30.0)
    },
    drill=("file-not-shared",),
)
