"""One answer for processes of one host or of several: which ranks wait where, and for which others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from allaboard import __version__
from allaboard.analysis.member_names import name_first_members
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack, is_peer_wait
from allaboard.analysis.stacks.stack_crowds import (
    group_member_stacks,
    make_crowds,
    number_unranked_members,
)
from allaboard.analysis.stacks.stack_tree import merge_stacks
from allaboard.analysis.stalls.stall import IDLE_CORES, is_settled_stack
from allaboard.check.collect import Gathered, configuration_sources, resolve_material
from allaboard.check.environment import environment_material
from allaboard.check.run_rules import judge_configuration
from allaboard.diagnosis.live.exited_processes import describe_departed, members_by_elimination
from allaboard.diagnosis.live.process_inspection import SAMPLE_COUNT, SAMPLE_INTERVAL_S
from allaboard.diagnosis.live.rank_filter import filter_ranks
from allaboard.diagnosis.live.unprobed_members import absent_ranks, assume_phases
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
from allaboard.rules.engine.relations import reports_absence

MAX_SHOWN_MEMBERS = 32
"""Members that are listed one by one."""
MAX_SHOWN_SOCKETS = 6
"""Sockets of one state that are shown for a member."""
SHOWN_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG",
         "JAX_PROCESS_ID", "JAX_NUM_PROCESSES", "JAX_COORDINATOR_ADDRESS", "SLURM_PROCID",
         "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")  # fmt: skip
"""Environment variables that are shown for a member."""


def diagnose_processes(looks: Sequence[HostLook], look_count: int = 1) -> Diagnosis:
    """Return the findings of all rules on the job of these processes and on their environments, and what is
    missing.

    ``look_count``: how often the processes were looked at, of which these looks are the last.
    """
    all_present = list(_all_present(looks))
    ranks, non_rank_lines = filter_ranks(all_present)
    now = looks[0].now if looks else 0.0
    departed_lines = [describe_departed(d, look.host) for look in looks for d in look.departed]
    view = _job_view(
        looks,
        _with_ended_ranks(
            looks, ranks, assume_phases(ranks, now - SAMPLE_COUNT * SAMPLE_INTERVAL_S)
        ),
    )
    findings = [
        _soften_join_findings(make_finding(entry, claim))
        for entry, claim in run_rules(view, load_catalogue().entries)
    ]
    findings += _environment_findings(ranks)
    unranked = number_unranked_members(view.alive)
    groups = group_member_stacks(view.alive, unranked)
    unreachable = [f"{look.host}: {look.trouble}" for look in looks if look.trouble]
    return Diagnosis(
        allaboard=__version__,
        read=tuple(f"pid {p.member.who.pid} of {p.member.who.host}" for p in all_present),
        told=(*_process_lines(ranks), *departed_lines),
        crowds=make_crowds(groups, unranked),
        tree=merge_stacks(groups, unranked),
        beside=non_rank_lines,
        findings=tuple(findings),
        missing=(*unreachable, *_absent_rank_lines(ranks, view.members)),
        notes=tuple(f"pid {p.member.who.pid}: no stack: {p.why}" for p in ranks if p.why),
        conclusion=""
        if findings
        else "no finding: " + _why_no_finding(ranks, departed_lines, unreachable, look_count),
    )


def _soften_join_findings(finding: Finding) -> Finding:
    """Return the finding as a likely one: a rank that was not looked at may be on its way, and a few seconds
    of looking prove nothing."""
    if not reports_absence(finding.rule):
        return finding
    sampling = Evidence(f"looked at for {SAMPLE_COUNT * SAMPLE_INTERVAL_S:.0f} s", "stacks")
    certainty = finding.certainty
    return msgspec.structs.replace(
        finding,
        certainty=Certainty.LIKELY if certainty is Certainty.CERTAIN else certainty,
        evidence=tuple(sampling if e.origin == "timeout" else e for e in finding.evidence),
    )


def _all_present(looks: Sequence[HostLook]) -> Iterator[Present]:
    """Yield all processes with one clock and one numbering: pids and clocks of two hosts are unrelated."""
    worker = 0
    for host_number, look in enumerate(looks):
        clock_offset = looks[0].now - look.now
        for process in look.present:
            member, stack = process.member, process.member.stack
            if stack is not None:
                stack = msgspec.structs.replace(stack, taken_at=stack.taken_at + clock_offset)
            shifted = msgspec.structs.replace(
                member,
                key=key_of(host_number, member.who.pid),
                worker=worker,
                phase_since=member.phase_since + clock_offset,
                moved_at=member.moved_at + clock_offset,
                os_state_since=member.os_state_since + clock_offset,
                stack=stack,
            )
            worker += 1
            yield msgspec.structs.replace(process, member=shifted)


def _with_ended_ranks(
    looks: Sequence[HostLook], present: Sequence[Present], members: tuple[Member, ...]
) -> tuple[Member, ...]:
    """Return the members with the ended ranks.

    If others wait in init, the ended ones ended before it; else they are taken to have come as far as the
    rest.
    """
    departed = tuple(d for look in looks for d in look.departed)
    host = next((look.host for look in looks if look.departed), "")
    someone_waits = any(m.phase is Phase.ARRIVED for m in members)
    now = looks[0].now if looks else 0.0
    phase = Phase.IMPORTED if someone_waits else Phase.TRAINING
    return (*members, *members_by_elimination(departed, present, host, now, phase))


def _job_view(looks: Sequence[HostLook], members: Sequence[Member]) -> JobView:
    pid_counts = Counter(m.who.pid for m in members)
    lock_waits = [w for look in looks for w in look.lock_waits if pid_counts[w.waiter] == 1]
    now = looks[0].now if looks else 0.0
    return JobView(
        now=now,
        launched=0,
        members=tuple(members),
        progress_at=now - SAMPLE_COUNT * SAMPLE_INTERVAL_S,
        stall_after=SAMPLE_INTERVAL_S,
        timeout=0.0,
        # Who else there may be is not known to the rules, and said beside them.
        joined=True,
        leads=True,
        lock_waits=tuple(lock_waits),
    )


def _environment_findings(ranks: Sequence[Present]) -> list[Finding]:
    """Return the errors in what the environments say, each by itself and compared."""
    sources = configuration_sources()
    configs: list[ConfigFacts] = []
    for process in ranks:
        who = process.member.who
        name = f"pid {who.pid}" + (f" of {who.host}" if len({p.member.who.host for p in ranks}) > 1
                                   else "")  # fmt: skip
        configs.append(resolve_material(name, environment_material(process.variables), sources))
    subjects = [(c.subject, c.spec) for c in configs if c.parts]
    pasted = [Pasted(specs=tuple(subjects))] if len(subjects) > 1 else []
    findings = judge_configuration(Gathered(configs=configs, job_views=pasted), ("CFG", "ENV"))
    return [f for f in findings if f.severity is Severity.ERROR]


def _process_lines(ranks: Sequence[Present]) -> Iterator[str]:
    owners = {
        (s.local, s.remote): p.member
        for p in ranks
        for s in p.sockets
        if s.state == "ESTAB"
    }  # fmt: skip
    for process in ranks[:MAX_SHOWN_MEMBERS]:
        yield _member_line(process)
        variables = " ".join(
            f"{n}={process.variables[n]}" for n in SHOWN_VARIABLES if n in process.variables
        )
        if variables:
            yield f"  environment: {variables[:300]}"
        sockets = "; ".join(_socket_clauses(process, owners))
        if sockets:
            yield f"  {sockets}"
    if len(ranks) > MAX_SHOWN_MEMBERS:
        yield f"and {len(ranks) - MAX_SHOWN_MEMBERS} more (--format json has them all)"


def _member_line(process: Present) -> str:
    member = process.member
    user_frame = member.stack.user if member.stack is not None else None
    location = f" at {user_frame}" if user_frame is not None else ""
    doing = "stopped" if member.is_stopped else str(classify_stack(member.stack))
    if member.stack is None:
        doing = f"no stack ({process.why or 'unknown'})"
    return f"{member.who}: {doing}{location}, {member.cpu * 100:.0f} % of a core"


def _socket_clauses(process: Present, owners: dict[tuple[str, str], Member]) -> Iterator[str]:
    """Yield where the process listens, whom it has no answer from, whom it is connected to."""
    by_state: dict[str, list[str]] = {}
    for socket in process.sockets:
        peer = owners.get((socket.remote, socket.local))
        name = socket.local if socket.state == "LISTEN" else socket.remote
        if peer is not None:
            name = f"rank {peer.who.rank}" if peer.who.rank >= 0 else f"pid {peer.who.pid}"
        if socket.state == "LISTEN" and socket.unread:
            name += f" ({socket.unread} not accepted)"
        by_state.setdefault(socket.state, []).append(name)
    phrases = {
        "LISTEN": "listens on",
        "SYN-SENT": "has no answer yet (SYN-SENT) from",
        "ESTAB": "is connected to",
        "CLOSE-WAIT": "has lost its connection (CLOSE-WAIT) to",
    }
    for state, phrase in phrases.items():
        names = Counter(by_state.get(state, ()))
        if names:
            shown_names = [
                f"{n} ×{c}" if c > 1 else n for n, c in list(names.items())[:MAX_SHOWN_SOCKETS]
            ]
            more = (
                f" and {len(names) - MAX_SHOWN_SOCKETS} more"
                if len(names) > MAX_SHOWN_SOCKETS
                else ""
            )
            yield f"{phrase} {', '.join(shown_names)}{more}"


def _absent_rank_lines(ranks: Sequence[Present], members: Sequence[Member]) -> list[str]:
    """Return a sentence on ranks that the environments imply but of which no process is known."""
    size, missing = absent_ranks(ranks)
    ended_ranks = {m.who.rank for m in members if not m.alive}
    missing = [rank for rank in missing if rank not in ended_ranks]
    if not missing:
        return []
    return [
        f"rank {ranges(missing)} of {size}: no process of it was examined; pass its PID, or its host with "
        "--hosts"
    ]


def _why_no_finding(
    ranks: Sequence[Present],
    departed_lines: Sequence[str],
    unreachable: Sequence[str],
    look_count: int,
) -> str:
    if departed_lines:
        return "a process that has ended cannot be examined any more; read its output first"
    if unreachable or any(p.why for p in ranks):
        return "unknown, because not every process could be examined"
    if len(ranks) == 1:
        return (
            "only this process was examined and it appears to be running; pass the PIDs of the other ranks "
            "as well"
        )
    members = [p.member for p in ranks]
    waiting_members = [
        m for m in members if m.stack and not m.stack.moving and is_peer_wait(m.stack)
    ]
    other_members = [m for m in members if m not in waiting_members]
    looks_clause = f" (examined {look_count} times)" if look_count > 1 else ""
    if not waiting_members and all(
        is_settled_stack(m.stack) and m.cpu < IDLE_CORES for m in members
    ):
        if all(classify_stack(m.stack) not in (Spot.USER, Spot.UNKNOWN) for m in members):
            return (
                f"all {len(members)} processes stand still{looks_clause}, and none waits for another: "
                + ", ".join(
                    f"{m.who.name} is {classify_stack(m.stack)}{_at_own_code(m)}"
                    for m in members[:4]
                )
            )
        return (
            f"all {len(members)} processes stand still{looks_clause}, but none at a place that shows what it "
            "waits for: native code (a jitted call of JAX, an extension) leaves no frame; see "
            f"py-spy dump --native --pid {members[0].who.pid}"
        )
    if not waiting_members or not other_members:
        return (
            f"no process stands still while another one waits for it{looks_clause}; run diagnose again while "
            "the job hangs"
        )
    verb = "wait" if len(waiting_members) > 1 else "waits"
    waits_clause = f"{name_first_members(waiting_members)} {verb} for "
    idle_member = next(
        (m for m in other_members if is_settled_stack(m.stack) and m.cpu < IDLE_CORES), None
    )
    if idle_member is not None:
        return (
            f"{waits_clause}{idle_member.who.name}, which stands still{looks_clause}"
            f"{_at_own_code(idle_member)}: {classify_stack(idle_member.stack)}. What that waits for may "
            f"still come; see py-spy dump --pid {idle_member.who.pid}, and pstree -ap "
            f"{idle_member.who.pid} for its children"
        )
    return (
        f"{waits_clause}{name_first_members(other_members)}{_at_own_code(other_members[0])}, which is still "
        f"running{looks_clause}: a long step, or a hang that has just begun; run diagnose again in 10 s"
    )


def _at_own_code(one: Member) -> str:
    """Return the place in the member's own code, in brackets."""
    place = one.stack.user if one.stack is not None else None
    return f" ({place})" if place is not None else ""
