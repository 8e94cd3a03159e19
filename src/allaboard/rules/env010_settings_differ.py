"""Members were given different settings for one job: another backend, another framework.

## Why it matters
A rank on gloo and a rank on nccl never meet: each waits for peers that use its own protocol. Nothing in
either log says so.

## What to do
Pass the same backend on every rank. Do not let it depend on whether *this* host has a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from allaboard.analysis.member_names import conjugate_verb
from allaboard.analysis.network.link_faults import example_four_hosts, example_host_member
from allaboard.analysis.roll_call.roll_call import find_roll_calls
from allaboard.contracts import Rule
from allaboard.facts import Claim, Declared, Evidence, JobView


def check(view: JobView) -> Iterator[Claim]:
    for roll in find_roll_calls(view) if view.joined and view.leads else ():
        declarations = {m.who.rank: m.declared for m in roll.held_members if m.declared is not None}
        if len({(d.framework, d.backend) for d in declarations.values()}) < 2:
            continue
        for setting in ("framework", "backend"):
            values = Counter(_setting_of(d, setting) for d in declarations.values())
            if len(values) < 2 or not roll.is_complete:
                continue
            usual_value = values.most_common(1)[0][0]
            differing = [
                m
                for m in roll.held_members
                if m.declared and _setting_of(m.declared, setting) != usual_value
            ]
            differing_value = _setting_of(declarations[differing[0].who.rank], setting)
            names = ", ".join(f"rank {m.who.rank} ({m.who.host})" for m in differing[:4])
            yield Claim(
                summary=f"{names} {conjugate_verb('use', differing)} the {setting} {differing_value}, "
                f"the others {usual_value}",
                who=tuple(m.who for m in differing),
                evidence=tuple(
                    Evidence(
                        f"{setting} {_setting_of(declarations[m.who.rank], setting)}",
                        declarations[m.who.rank].call,
                    )
                    for m in differing[:4]
                ),
                fix=f"give every rank the same {setting}",
                since=max(m.phase_since for m in differing),
            )


def _setting_of(declaration: Declared, setting: str) -> str:
    return str(getattr(declaration, setting)) or "of its default"


def _view_with_backend(backend: str) -> JobView:
    wrong = example_host_member(2)
    assert wrong.declared is not None
    wrong = msgspec.structs.replace(
        wrong, declared=msgspec.structs.replace(wrong.declared, backend=backend)
    )
    members = tuple(
        msgspec.structs.replace(m, declared=msgspec.structs.replace(m.declared, backend="gloo"))
        for m in (example_host_member(0), example_host_member(1), example_host_member(3))
        if m.declared is not None
    )
    return msgspec.structs.replace(example_four_hosts(), members=(*members[:2], wrong, members[2]))


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "one rank uses NCCL, and the others gloo": (
            _view_with_backend("nccl"),
            "rank 2 (h2) uses the backend nccl, the others gloo",
        )
    },
    silent_on={"all ranks use gloo": _view_with_backend("gloo")},
    drill=("other-backend",),
)
