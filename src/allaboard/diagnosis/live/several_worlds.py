"""One answer for several worlds of ranks side by side, such as a trainer's and a rollout's. Pure.

Each world is judged by itself. Who waits for a process of another world is said beside that, and with the
finding about whoever it waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from allaboard.diagnosis.live.no_finding import NO_FINDING
from allaboard.diagnosis.live.process_lines import process_lines
from allaboard.diagnosis.live.world_diagnosis import diagnose_world
from allaboard.diagnosis.live.world_waits import (
    describe_world_wait,
    find_world_waits,
    wait_lines,
    world_lines,
)
from allaboard.diagnosis.live.worlds import World
from allaboard.facts import Diagnosis, Evidence, Finding, HostLook, Member, WorldWait


def diagnose_side_by_side(
    looks: Sequence[HostLook], worlds: Sequence[World], look_count: int, unchanged_s: float
) -> Diagnosis:
    """Return what is found in each world, and which waits for which; the other arguments are those of
    `diagnose_world`."""
    waits = find_world_waits(worlds)
    # Which world an ended process was of cannot be seen any more.
    living = [msgspec.structs.replace(look, departed=()) for look in looks]
    answers = [
        (
            world,
            diagnose_world(
                living, world.processes, look_count, _waits_of(world, waits), unchanged_s
            ),
        )
        for world in worlds
    ]
    # A world that others wait for comes first: the cause is there.
    awaited = {w.holder_world for w in waits}
    answers.sort(key=lambda answer: answer[0].name not in awaited)
    ends = {
        (s.local, s.remote): (world, p.member)
        for world in worlds
        for p in world.processes
        for s in p.sockets
        if s.state == "ESTAB"
    }
    findings = [
        _of_world(finding, world, waits) for world, answer in answers for finding in answer.findings
    ]
    return Diagnosis(
        told=(
            *world_lines(worlds),
            *(
                line
                for world in worlds
                for line in (
                    f"{world.name}:",
                    *process_lines(
                        world.processes,
                        {
                            e: f"{_rank_name(m)} of {w.name}"
                            for e, (w, m) in ends.items()
                            if w != world
                        },
                    ),
                )
            ),
            *wait_lines(worlds, waits),
        ),
        crowds=tuple(
            msgspec.structs.replace(crowd, world=world.name)
            for world, answer in answers
            for crowd in answer.crowds
        ),
        tree=tuple(
            msgspec.structs.replace(branch, world=world.name)
            for world, answer in answers
            for branch in answer.tree
        ),
        findings=tuple(findings),
        missing=tuple(f"{w.name}: {line}" for w, answer in answers for line in answer.missing),
        conclusion="" if findings else NO_FINDING + "; ".join(_conclusions(answers, waits)),
    )


def _waits_of(world: World, waits: Sequence[WorldWait]) -> tuple[WorldWait, ...]:
    return tuple(w for w in waits if world.name in (w.waiter_world, w.holder_world))


def _of_world(finding: Finding, world: World, waits: Sequence[WorldWait]) -> Finding:
    """Return the finding with the name of its world, and the waits of other worlds for that."""
    evidence = [
        Evidence(describe_world_wait(w, with_connection=False), w.through)
        for w in waits
        if w.holder_world == world.name and w.through not in {e.origin for e in finding.evidence}
    ]
    return msgspec.structs.replace(
        finding,
        summary=f"{world.name}: {finding.summary}",
        evidence=(*finding.evidence[:1], *evidence, *finding.evidence[1:]),
    )


def _conclusions(
    answers: Sequence[tuple[World, Diagnosis]], waits: Sequence[WorldWait]
) -> Iterator[str]:
    """Yield for each world what it waits for: another world, or what its own ranks show."""
    for world, answer in answers:
        awaited = dict.fromkeys(w.holder_world for w in waits if w.waiter_world == world.name)
        if awaited:
            yield f"{world.name} waits for {' and '.join(awaited)}, which is no fault by itself"
        else:
            yield f"{world.name}: {answer.conclusion.removeprefix(NO_FINDING)}"


def _rank_name(member: Member) -> str:
    return f"rank {member.who.rank}" if member.who.rank >= 0 else member.who.name
