"""One answer of what was looked at, on one host or on several: who waits where, and who does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from allaboard import __version__
from allaboard.analysis.member_names import first_names
from allaboard.analysis.stacks.places import (
    group_member_stacks,
    make_crowds,
    number_unranked_members,
)
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack, is_peer_wait
from allaboard.analysis.stacks.tree import merge_stacks
from allaboard.analysis.stalls.stall import IDLE_CORES, is_settled_stack
from allaboard.check.collect import Gathered, config_of, configuration_sources
from allaboard.check.environment import environment
from allaboard.check.run_rules import judge
from allaboard.diagnosis.live.exited_processes import by_elimination, said
from allaboard.diagnosis.live.process_inspection import BETWEEN, LOOKS
from allaboard.diagnosis.live.rank_filter import ranks_among
from allaboard.diagnosis.live.unprobed_members import absent, assumed
from allaboard.facts import (
    Certainty,
    ConfigFacts,
    Diagnosis,
    Evidence,
    Finding,
    HostLook,
    JobView,
    Member,
    Pasted,
    Phase,
    Present,
    Severity,
)
from allaboard.facts.rank_sets import format_ranks as ranges
from allaboard.protocol.process_keys import process_key as key_of
from allaboard.rules.engine.catalogue import load_catalogue
from allaboard.rules.engine.evaluate import make_finding, run_rules

PEOPLE = 32
"""Members that are told one by one."""
PLACES = 6
"""Sockets of one state that are told of a member."""
SHOWN = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG",
         "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "JAX_COORDINATOR_ADDRESS", "SLURM_PROCID",
         "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")  # fmt: skip


def diagnosis(looks: Sequence[HostLook], times: int = 1) -> Diagnosis:
    """The findings of all rules on the job that these processes are, and of those that read what they
    were told; who is missing. ``times``: how often was looked, the last of which these looks are."""
    everybody = list(_people(looks))
    people, beside = ranks_among(everybody)
    now = looks[0].now if looks else 0.0
    gone = [said(d, one.host) for one in looks for d in one.departed]
    view = _view(looks, _with_the_ended(looks, people, assumed(people, now - LOOKS * BETWEEN)))
    found = [
        _sure(make_finding(entry, claim))
        for entry, claim in run_rules(view, load_catalogue().entries)
    ]
    found += _of_what_they_were_told(people)
    unnamed = number_unranked_members(view.alive)
    groups = group_member_stacks(view.alive, unnamed)
    missing = [f"{one.host}: {one.trouble}" for one in looks if one.trouble]
    return Diagnosis(
        allaboard=__version__,
        read=tuple(f"pid {p.member.who.pid} of {p.member.who.host}" for p in everybody),
        told=(*_told(people), *gone),
        crowds=make_crowds(groups, unnamed),
        tree=merge_stacks(groups, unnamed),
        beside=beside,
        findings=tuple(found),
        missing=(*missing, *_absent(people, view.members)),
        notes=tuple(f"pid {p.member.who.pid}: no stack: {p.why}" for p in people if p.why),
        conclusion="" if found else "no finding: " + _why_none(people, gone, missing, times),
    )


def _sure(finding: Finding) -> Finding:
    """Whoever was not looked at may be on its way: from a few seconds of looking that is not certain."""
    if not finding.rule.startswith("JOIN"):
        return finding
    looked = Evidence(f"looked at for {LOOKS * BETWEEN:.0f} s", "stacks")
    certainty = finding.certainty
    return msgspec.structs.replace(
        finding,
        certainty=Certainty.LIKELY if certainty is Certainty.CERTAIN else certainty,
        evidence=tuple(looked if e.origin == "timeout" else e for e in finding.evidence),
    )


def _people(looks: Sequence[HostLook]) -> Iterator[Present]:
    """Everybody, by one clock and one numbering: pids and clocks of two hosts know nothing of each
    other."""
    number = 0
    for at, one in enumerate(looks):
        later = looks[0].now - one.now
        for person in one.present:
            member, stack = person.member, person.member.stack
            if stack is not None:
                stack = msgspec.structs.replace(stack, taken_at=stack.taken_at + later)
            moved = msgspec.structs.replace(
                member,
                key=key_of(at, member.who.pid),
                worker=number,
                phase_since=member.phase_since + later,
                moved_at=member.moved_at + later,
                os_state_since=member.os_state_since + later,
                stack=stack,
            )
            number += 1
            yield msgspec.structs.replace(person, member=moved)


def _with_the_ended(
    looks: Sequence[HostLook], people: Sequence[Present], members: tuple[Member, ...]
) -> tuple[Member, ...]:
    """Where others wait in init they ended before it; else they are taken to have come as far as the rest."""
    gone = tuple(d for one in looks for d in one.departed)
    host = next((one.host for one in looks if one.departed), "")
    waits = any(m.phase is Phase.ARRIVED for m in members)
    now = looks[0].now if looks else 0.0
    phase = Phase.IMPORTED if waits else Phase.TRAINING
    return (*members, *by_elimination(gone, people, host, now, phase))


def _view(looks: Sequence[HostLook], members: Sequence[Member]) -> JobView:
    count = Counter(m.who.pid for m in members)
    waits = [w for one in looks for w in one.lock_waits if count[w.waiter] == 1]
    now = looks[0].now if looks else 0.0
    return JobView(
        now=now,
        launched=0,
        members=tuple(members),
        progress_at=now - LOOKS * BETWEEN,
        stall_after=BETWEEN,
        timeout=0.0,
        # Who else there may be is not known to the rules, and said beside them.
        joined=True,
        leads=True,
        lock_waits=tuple(waits),
    )


def _of_what_they_were_told(people: Sequence[Present]) -> list[Finding]:
    """Errors in what their environments say, each by itself and compared."""
    known = configuration_sources()
    configs: list[ConfigFacts] = []
    for person in people:
        who = person.member.who
        name = f"pid {who.pid}" + (f" of {who.host}" if len({p.member.who.host for p in people}) > 1
                                   else "")  # fmt: skip
        configs.append(config_of(name, environment(person.variables), known))
    views = [(c.subject, c.spec) for c in configs if c.parts]
    pasted = [Pasted(specs=tuple(views))] if len(views) > 1 else []
    found = judge(Gathered(configs=configs, pasted=pasted), ("CFG", "ENV"))
    return [f for f in found if f.severity is Severity.ERROR]


def _told(people: Sequence[Present]) -> Iterator[str]:
    owners = {
        (s.local, s.remote): p.member
        for p in people
        for s in p.sockets
        if s.state == "ESTAB"
    }  # fmt: skip
    for person in people[:PEOPLE]:
        yield _member(person)
        variables = " ".join(f"{n}={person.variables[n]}" for n in SHOWN if n in person.variables)
        if variables:
            yield f"  was told {variables[:300]}"
        sockets = "; ".join(_sockets(person, owners))
        if sockets:
            yield f"  {sockets}"
    if len(people) > PEOPLE:
        yield f"and {len(people) - PEOPLE} more (--format json has them all)"


def _member(person: Present) -> str:
    member = person.member
    place = member.stack.user if member.stack is not None else None
    at = f" at {place}" if place is not None else ""
    doing = "stopped" if member.stopped else str(classify_stack(member.stack))
    if member.stack is None:
        doing = f"no stack ({person.why or 'unknown'})"
    return f"{member.who}: {doing}{at}, {member.cpu * 100:.0f} % of a core"


def _sockets(person: Present, owners: dict[tuple[str, str], Member]) -> Iterator[str]:
    """Where it listens, whom it knocks at without an answer, whom it is connected to."""
    by_state: dict[str, list[str]] = {}
    for one in person.sockets:
        other = owners.get((one.remote, one.local))
        name = one.local if one.state == "LISTEN" else one.remote
        if other is not None:
            name = f"rank {other.who.rank}" if other.who.rank >= 0 else f"pid {other.who.pid}"
        if one.state == "LISTEN" and one.unread:
            name += f" ({one.unread} not accepted)"
        by_state.setdefault(one.state, []).append(name)
    words = {
        "LISTEN": "listens on",
        "SYN-SENT": "has no answer yet (SYN-SENT) from",
        "ESTAB": "is connected to",
        "CLOSE-WAIT": "was left (CLOSE-WAIT) by",
    }
    for state, word in words.items():
        names = Counter(by_state.get(state, ()))
        if names:
            shown = [f"{n} ×{c}" if c > 1 else n for n, c in list(names.items())[:PLACES]]
            more = f" and {len(names) - PLACES} more" if len(names) > PLACES else ""
            yield f"{word} {', '.join(shown)}{more}"


def _absent(people: Sequence[Present], members: Sequence[Member]) -> list[str]:
    """Ranks that the others were told of, and of which no process is here or is known to have ended."""
    size, missing = absent(people)
    ended = {m.who.rank for m in members if not m.alive}
    missing = [rank for rank in missing if rank not in ended]
    if not missing:
        return []
    return [
        f"rank {ranges(missing)} of {size}: no process of it was looked at; name its pid, or its host by "
        "--hosts"
    ]


def _why_none(
    people: Sequence[Present], gone: Sequence[str], missing: Sequence[str], times: int
) -> str:
    if gone:
        return "who has ended cannot be looked at any more; read its output first"
    if missing or any(p.why for p in people):
        return "unknown, because not every process could be looked at"
    if len(people) == 1:
        return "it was alone looked at, and moves; name the pids of the other ranks too"
    members = [p.member for p in people]
    waiting = [m for m in members if m.stack and not m.stack.moving and is_peer_wait(m.stack)]
    moving = [m for m in members if m not in waiting]
    looked = f" (looked at {times} times)" if times > 1 else ""
    if not waiting and all(is_settled_stack(m.stack) and m.cpu < IDLE_CORES for m in members):
        if all(classify_stack(m.stack) not in (Spot.USER, Spot.UNKNOWN) for m in members):
            return (
                f"all {len(members)} stand still{looked}, and none of them waits for another: "
                + ", ".join(
                    f"{m.who.name} is {classify_stack(m.stack)}{_at(m)}" for m in members[:4]
                )
            )
        return (
            f"all {len(members)} stand still{looked}, and none of them at a place that shows whom it waits "
            "for: native code (a jitted call of JAX, an extension) leaves no frame; see "
            f"py-spy dump --native --pid {members[0].who.pid}"
        )
    if not waiting or not moving:
        return f"nobody stands still while another waits for it{looked}; look again while it hangs"
    awaited = f"{first_names(waiting)} {'wait' if len(waiting) > 1 else 'waits'} for "
    still = next((m for m in moving if is_settled_stack(m.stack) and m.cpu < IDLE_CORES), None)
    if still is not None:
        return (
            f"{awaited}{still.who.name}, which stands still{looked}{_at(still)}: {classify_stack(still.stack)}. What "
            f"that waits for may still come; see py-spy dump --pid {still.who.pid}, and pstree -ap "
            f"{still.who.pid} for its children"
        )
    return (
        f"{awaited}{first_names(moving)}{_at(moving[0])}, where something still moves{looked}: a long "
        "step, or a hang that has just begun; look again in 10 s"
    )


def _at(one: Member) -> str:
    """The place in its own code, in brackets."""
    place = one.stack.user if one.stack is not None else None
    return f" ({place})" if place is not None else ""
