"""The first host has not posted where to meet in the place where this host looks for it.

## Why it matters
With a file:// rendezvous the ranks know of each other through one file alone. If the folder is a local disk
on this host and a shared one on the others, the rank waits forever without a message: as far as PyTorch can
see, nobody else has come yet. Under torchrun it is the launcher's store that is asked, and rank 0 has not
come there.

## What to do
See whether rank 0 has started and has reached its init. If it has, compare `findmnt -T FOLDER` on its host
and on this one: both must show the same shared disk.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from allaboard.analysis.roll_call.rendezvous_attempt import calling, overdue
from allaboard.contracts import Rule
from allaboard.facts import Answer, Claim, Evidence, JobView, Stage


def check(view: JobView) -> Iterator[Claim]:
    tried = overdue(view, Answer.UNPOSTED)
    if tried is None:
        return
    told, host = tried.member.declared, tried.member.who.host
    place = told.place if told is not None else ""
    shared = place.startswith("file://")
    folder = shlex.quote(place.removeprefix("file://").rpartition("/")[0] or "/")
    either = f", or {host} does not share that folder with it" if shared else ""
    yield Claim(
        summary=f"rank 0 was never seen at {place}: it has not come yet{either}",
        who=(tried.member.who,),
        evidence=(
            Evidence(f"{tried.call.said}, looked {tried.call.tries} times", host),
            Evidence(place, told.origin if told is not None else ""),
        ),
        fix=f"on {host} and on the host of rank 0: findmnt -T {folder}   # the same disk?"
        if shared
        else "look at rank 0 on its own host: has it started?",
        since=tried.call.since,
        awaits=True,
    )


def _view(place: str, waited: float) -> JobView:
    view = calling(Answer.UNPOSTED, waited, "no file /shared/meeting.allaboard")
    (member,) = view.members
    assert member.declared is not None
    told = msgspec.structs.replace(member.declared, place=place)
    return msgspec.structs.replace(view, members=(msgspec.structs.replace(member, declared=told),))


RULE = Rule(
    stage=Stage.NETWORK,
    reads=JobView,
    check=check,
    fires_on={
        "a folder of its own": (
            _view("file:///shared/meeting", 61.0),
            "rank 0 was never seen at file:///shared/meeting: it has not come yet, or a does not share "
            "that folder with it",
        ),
        "torchrun's store": (
            _view("tcp://node0:29500", 61.0),
            "rank 0 was never seen at tcp://node0:29500: it has not come yet",
        ),
    },
    silent_on={"there is time left": _view("file:///shared/meeting", 30.0)},
    since="0.1",
    drill=("file-not-shared",),
)
