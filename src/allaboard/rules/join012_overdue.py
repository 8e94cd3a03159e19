"""Members wait at the gate for longer than the roll call may take, and no other rule knows why.

## Why it matters
A wait without an end looks like a slow start. With `--timeout` the job is ended; without it the gate opens
after the default time, and the framework itself tries to meet the others.

## What to do
The evidence says what the waiting member's host knows of the others. Check on their hosts whether they run,
and compare the address and the world size in their configuration with those of this one.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.analysis.roll_call.overdue import RULES_GRACE_S, find_overdue_member
from allaboard.analysis.roll_call.rendezvous_attempt import example_attempt
from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.contracts import Relations, Rule
from allaboard.facts import Answer, Claim, Evidence, JobView
from allaboard.facts.samples import arrived_member, coming_member, gathering_job


def check(view: JobView) -> Iterator[Claim]:
    member = find_overdue_member(view, find_roll_calls(view))
    if member is None or member.declared is None:
        return
    declared, call = member.declared, view.call
    waited_s = view.now - member.phase_since
    meeting_place = declared.place or "the tasks of its cluster"
    known_as = (
        Evidence(f"connect to {call.address}: {call.said or call.answer}", member.who.host)
        if call is not None and not view.leads
        else Evidence(f"{len(view.members)} of {declared.world_size} are known", member.who.host)
    )
    yield Claim(
        summary=f"{member.who.name} has waited {waited_s:.0f} s for the others at {meeting_place}",
        who=(member.who,),
        evidence=(known_as, Evidence(meeting_place, declared.origin or declared.call)),
        fix="on every host: allaboard spec   # the same address and world size everywhere?",
        since=member.phase_since,
        awaits=True,
    )


_OVERDUE_S = 60.0 + RULES_GRACE_S
_UNMET = msgspec.structs.replace(example_attempt(Answer.ABOARD, _OVERDUE_S + 1.0), call=None)
RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "a worker has heard nothing of the others beyond the timeout": (
            _UNMET,
            "worker 1 has waited 63 s for the others at tcp://node0:29500",
        ),
        "large packets to the first host have been lost beyond the timeout": (
            example_attempt(Answer.CUT, _OVERDUE_S + 1.0, "large packets are lost"),
            "worker 1 has waited 63 s for the others at tcp://node0:29500",
        ),
    },
    silent_on={
        "a worker has waited for 59 seconds, less than the timeout": example_attempt(
            Answer.CUT, 59.0
        ),
        "a live worker has yet to reach init": gathering_job(
            arrived_member(0, 2), coming_member(1), now=500.0
        ),
    },
    unstaged="it is the last resort for reasons that no rule knows; each known one has a rule and a drill",
    relations=Relations(last_resort=True),
)
