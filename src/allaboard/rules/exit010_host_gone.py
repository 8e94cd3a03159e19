"""A host has vanished: its agent is no longer heard from, and the other hosts' workers failed.

## Why it matters
A host that crashes, is taken away (preemption) or loses its network says nothing. Its peers see a closed
connection, and each names another peer; nobody says which host it was.

## What to do
See whether the host is up (`ping -c 3 HOST`), and what is recorded about its end: its kernel's log (`dmesg
-T | tail`), the provider's events. If it is up, its allaboard was killed; its log says by whom.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from allaboard.analysis.failures.failure_causality import order_failures
from allaboard.analysis.failures.lost_hosts import find_lost_hosts
from allaboard.analysis.member_names import names
from allaboard.contracts import Relations, Rule
from allaboard.facts import Certainty, Claim, Evidence, JobView, Member, Stage, Who
from allaboard.facts.samples import ended, job, waiting


def check(view: JobView) -> Iterator[Claim]:
    for gone in find_lost_hosts(view) if not order_failures(view).root_failures else ():
        if gone.victims:
            yield _claim(gone.host, gone.members, gone.victims)


def _claim(host: str, there: tuple[Member, ...], fell: tuple[Member, ...]) -> Claim:
    end, first = there[0].exit, fell[0]
    assert end is not None
    said = first.raised.message[:200] if first.raised is not None else "it failed then, too"
    return Claim(
        summary=f"{host} has vanished, and {names(there)} with it",
        who=tuple(m.who for m in there),
        evidence=(
            Evidence("its agent is no longer heard from", "the connection to it"),
            Evidence(said, first.who.name),
        ),
        fix=f"ping -c 3 {shlex.quote(host)}   # if it is up, look there: dmesg -T | tail; who killed "
        "allaboard?",
        certainty=Certainty.LIKELY,
        since=end.at,
    )


_LOST = ("RuntimeError", "Connection closed by peer [10.0.0.2]:18334")
_B = Who(index=1, rank=1, host="b", pid=101)


def _view(
    interrupted: float | None = None, at: float = 95.0, step_at: float = 90.0, **there: object
) -> JobView:
    first = ended(0, at=at, raised=_LOST, member={"step_at": step_at})
    changes = {"who": _B, "interrupted": interrupted}
    return job(first, ended(1, at=95.0, member=changes, **there), joined=True, launched=1)


RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    needs=("exit",),
    fires_on={
        "its agent too": (
            _view(lost=True, code=None),
            "b has vanished, and worker 1 with it",
        ),
        "its peer wrote a checkpoint meanwhile": (
            _view(at=150.0, lost=True, code=None),
            "b has vanished, and worker 1 with it",
        ),
    },
    silent_on={
        "its agent told of its end": _view(signal=9),
        "its agent was interrupted, and said so": _view(interrupted=94.0, lost=True, code=None),
        "the others went on without it": _view(at=150.0, step_at=149.0, lost=True, code=None),
        "nobody fell": job(
            waiting(0), ended(1, at=95.0, lost=True, code=None, member={"who": _B}), joined=True
        ),
    },
    since="0.1",
    drill=("agent-killed", "agent-killed-unseen"),
    relations=Relations(begins_failure=True, precedes_all=True),
)
