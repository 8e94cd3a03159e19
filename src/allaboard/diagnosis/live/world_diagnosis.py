"""What the rules find about the ranks of one world, on one host or several, and what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import msgspec

from allaboard.analysis.parameter_servers import AUXILIARY_JOBS
from allaboard.analysis.stacks.stack_classifier import Spot, classify_stack
from allaboard.analysis.stacks.stack_crowds import (
    group_member_stacks,
    make_crowds,
    number_unranked_members,
    task_names,
)
from allaboard.analysis.stacks.stack_tree import merge_stacks
from allaboard.analysis.stalls.examined_duration import shortest_wait, unanswered_time
from allaboard.check.collect import Gathered, configuration_sources, resolve_material
from allaboard.check.run_rules import judge_configuration
from allaboard.diagnosis.live.exited_processes import describe_departed, members_by_elimination
from allaboard.diagnosis.live.no_finding import why_no_finding
from allaboard.diagnosis.live.process_inspection import SAMPLE_COUNT, SAMPLE_INTERVAL_S
from allaboard.diagnosis.live.start_commands import explain_absent_rank
from allaboard.diagnosis.live.tensorflow_tasks import TaskRollCall, call_tasks, explain_absence
from allaboard.diagnosis.live.unprobed_members import SPOTS_AFTER_INIT, absent_ranks, assume_phases
from allaboard.diagnosis.live.unranked_names import gap_lines
from allaboard.facts import Certainty, Evidence, Finding, JobView, Pasted, Severity, WorldWait
from allaboard.facts.configuration.config_facts import ConfigFacts
from allaboard.facts.configuration.source_material import Material
from allaboard.facts.diagnosis import Diagnosis
from allaboard.facts.live_look import HostLook, Present
from allaboard.facts.member import Member, Phase
from allaboard.facts.rank_sets import name_ranks
from allaboard.rules.engine.catalogue import load_catalogue
from allaboard.rules.engine.evaluate import make_finding, run_rules
from allaboard.rules.engine.relations import (
    declared_relations,
    reports_absence,
    without_repeated,
    without_unknown_causes,
)


def diagnose_world(
    looks: Sequence[HostLook],
    ranks: Sequence[Present],
    look_count: int = 1,
    world_waits: Sequence[WorldWait] = (),
    unchanged_s: float = 0.0,
) -> Diagnosis:
    """Return the findings of all rules on these ranks and on their environments, and what is missing.

    ``look_count``: how often the processes were looked at, of which these looks are the last.
    ``world_waits``: waits of these ranks for another world, and of another one for them.
    ``unchanged_s``: for how long the processes are known to have stood where these looks find them.
    """
    now = looks[0].now if looks else 0.0
    since = now - SAMPLE_COUNT * SAMPLE_INTERVAL_S
    tasks = call_tasks(looks, ranks, since)
    departed_lines = [describe_departed(d, look.host) for look in looks for d in look.departed]
    view = _job_view(
        looks,
        _with_ended_ranks(
            looks, ranks, tasks.members if tasks is not None else assume_phases(ranks, since)
        ),
        world_waits,
        max(unchanged_s, unanswered_time(ranks), shortest_wait(ranks)),
    )
    findings = [
        _soften_join_findings(make_finding(entry, claim), tasks, looks, ranks)
        for entry, claim in run_rules(view, load_catalogue().entries)
        # Those judge how long a whole run has waited: of that, a few seconds of looking show nothing.
        if not entry.rule.relations.last_resort
    ]
    relations_of = declared_relations(load_catalogue().entries)
    differences = without_repeated(_environment_findings(ranks), findings, relations_of)
    if all(classify_stack(p.member.stack) is Spot.INIT for p in ranks):
        findings = without_unknown_causes(findings, differences)
    findings += differences
    examined = [p.member for p in ranks if p.member.who.job not in AUXILIARY_JOBS]
    unranked = number_unranked_members(examined)
    groups = group_member_stacks(examined, unranked)
    unreachable = [f"{look.host}: {look.trouble}" for look in looks if look.trouble]
    return Diagnosis(
        crowds=make_crowds(groups, unranked, task_names(examined)),
        tree=merge_stacks(groups, unranked),
        findings=tuple(findings),
        missing=tuple(
            (*_absent_rank_lines(ranks, view.members), *gap_lines(ranks))
            if tasks is None
            else tasks.elsewhere
        ),
        conclusion=""
        if findings
        else why_no_finding(ranks, departed_lines, unreachable, look_count),
    )


def _soften_join_findings(
    finding: Finding,
    tasks: TaskRollCall | None,
    looks: Sequence[HostLook],
    ranks: Sequence[Present],
) -> Finding:
    """Return the finding as a likely one: a rank that was not looked at may be on its way, and a few seconds
    of looking prove nothing."""
    if not reports_absence(finding.rule):
        return finding
    if tasks is not None and tasks.absent and all(not w.pid for w in finding.who):
        finding = explain_absence(finding, tasks)
    elif finding.who and all(not w.pid for w in finding.who):
        finding = explain_absent_rank(finding, looks, ranks)
    sampling = Evidence(f"looked at for {SAMPLE_COUNT * SAMPLE_INTERVAL_S:.0f} s", "stacks")
    certainty = finding.certainty
    return msgspec.structs.replace(
        finding,
        certainty=Certainty.LIKELY if certainty is Certainty.CERTAIN else certainty,
        evidence=tuple(sampling if e.origin == "timeout" else e for e in finding.evidence),
    )


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


def _job_view(
    looks: Sequence[HostLook],
    members: Sequence[Member],
    world_waits: Sequence[WorldWait],
    unchanged_s: float,
) -> JobView:
    pid_counts = Counter(m.who.pid for m in members)
    lock_waits = [w for look in looks for w in look.lock_waits if pid_counts[w.waiter] == 1]
    now = looks[0].now if looks else 0.0
    return JobView(
        now=now,
        launched=0,
        members=tuple(members),
        progress_at=now - max(unchanged_s, SAMPLE_COUNT * SAMPLE_INTERVAL_S),
        stall_after=SAMPLE_INTERVAL_S,
        timeout=0.0,
        # Who else there may be is not known to the rules, and said beside them.
        joined=True,
        leads=True,
        lock_waits=tuple(lock_waits),
        world_waits=tuple(world_waits),
    )


def _environment_findings(ranks: Sequence[Present]) -> list[Finding]:
    """Return the errors in what the environments say, each by itself and compared."""
    sources = configuration_sources()
    configs: list[ConfigFacts] = []
    for process in filter(_is_numbered_by_environment, ranks):
        who = process.member.who
        name = f"pid {who.pid}" + (f" of {who.host}" if len({p.member.who.host for p in ranks}) > 1
                                   else "")  # fmt: skip
        configs.append(
            resolve_material(name, Material.from_environment(process.variables), sources)
        )
    subjects = [(c.subject, c.spec) for c in configs if c.parts]
    pasted = [Pasted(specs=tuple(subjects))] if len(subjects) > 1 else []
    findings = judge_configuration(Gathered(configs=configs, job_views=pasted), ("CFG", "ENV"))
    return [f for f in findings if f.severity is Severity.ERROR]


def _is_numbered_by_environment(process: Present) -> bool:
    """Return False for a rank of PyTorch that has got its number from its program: that its environment lacks
    one is no mistake."""
    if process.member.framework != "torch" or {"RANK", "TF_CONFIG"} & process.variables.keys():
        return True
    spots_after_init = (*SPOTS_AFTER_INIT, Spot.STEP)
    return not (
        "RANK" in process.arguments or classify_stack(process.member.stack) in spots_after_init
    )


def _is_on_one_host(process: Present) -> bool:
    """Return True if torchrun runs all ranks of its job on this host, where none can be overlooked."""
    stated = process.variables
    return "TORCHELASTIC_RUN_ID" in stated and stated.get("LOCAL_WORLD_SIZE", "") == stated.get(
        "WORLD_SIZE"
    )


def _absent_rank_lines(ranks: Sequence[Present], members: Sequence[Member]) -> list[str]:
    """Return a sentence on ranks that the environments imply but of which no process is known."""
    size, missing = absent_ranks(ranks)
    accounted_for = {m.who.rank for m in members if not m.alive}
    accounted_for |= {p.member.who.rank for p in ranks}
    missing = [rank for rank in missing if rank not in accounted_for]
    if not missing:
        return []
    if any(map(_is_on_one_host, ranks)):
        return [
            f"{name_ranks(missing)} of {size}: ended, since their launcher runs all ranks on this host; see "
            "in their output how"
        ]
    whose = "it" if len(missing) == 1 else "them"
    return [
        f"{name_ranks(missing)} of {size}: no process of {whose} was examined; pass its PID, or its host "
        "with --hosts"
    ]
