"""Findings from testimony: glimpses become members, which the rules for a job that has ended judge. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.analysis.failures.launcher_errors import CHILD_ERRORS
from allaboard.analysis.failures.library_errors import A_PROCESS, explain_library_error
from allaboard.analysis.log_messages import known_message_claim, merge_heard
from allaboard.analysis.member_names import name_members
from allaboard.analysis.stacks.unranked_processes import FIRST_UNRANKED_NUMBER
from allaboard.diagnosis.logs import last_resort
from allaboard.diagnosis.logs.end_reasons import (
    drop_explained_aborts,
    drop_following_aborts,
    settle_bare_ends,
    with_last_errors,
    with_logged_reasons,
)
from allaboard.diagnosis.logs.fix_advice import next_step
from allaboard.diagnosis.logs.heard_messages import related_messages, without_wrappers
from allaboard.diagnosis.logs.nccl.consequences import without_stated_reasons
from allaboard.diagnosis.logs.nccl.recorded_findings import without_repeated_facts
from allaboard.diagnosis.logs.non_rank_processes import separate_ranks
from allaboard.diagnosis.logs.processes import (
    UNNAMED_PREFIX,
    Process,
    group_by_process,
    known_members,
)
from allaboard.diagnosis.logs.run_readers import LogRecord
from allaboard.diagnosis.logs.severity_downgrade import COUNTER_EVIDENCE, downgrade_severities
from allaboard.facts import Certainty, Claim, Evidence, Finding, JobView, Recording, Severity, Stage
from allaboard.facts.log_evidence import Dumps, Glimpse, Watchdogs
from allaboard.facts.member import Exit, Member, Phase, Raised
from allaboard.rules.engine.catalogue import Catalogue
from allaboard.rules.engine.evaluate import make_finding, run_rules
from allaboard.rules.engine.relations import (
    declared_relations,
    order_findings,
    suppress_consequences,
    without_last_resort,
    without_raised,
)

_WATCHDOG_WORD = "WorkNCCL("
"""Begins the description of a collective in a watchdog's line."""
_LIVE_ORIGINS = ("wait status", "its last line", "black box", "its control group")
"""Origins that rules give to evidence that is seen live; here it was read afterwards."""


MAX_END_EVIDENCE = 4
"""Observed values of one end that are shown."""


def find_causes(record: LogRecord, catalogue: Catalogue) -> tuple[Finding, ...]:
    """Return all findings that the testimony leads to, causes before consequences."""
    processes_seen = group_by_process(record.glimpses, len(record.unranked_nodes) < 2)
    members, origins = make_members(processes_seen)
    findings = [*_end_findings(members, origins, _doubts_by_exception(record.glimpses), catalogue)]
    relations_of = declared_relations(catalogue.entries)
    findings = drop_explained_aborts(findings, record.heard, relations_of)
    messages = related_messages(record, catalogue, findings)
    findings = without_raised(findings, {r for h in messages for r in h.explains}, relations_of)
    message_findings = [
        make_finding(entry, known_message_claim(h))
        for h in messages
        if (entry := catalogue.find_rule(h.rule)) is not None
    ]
    message_findings = [f for f in message_findings if not relations_of(f.rule).last_resort]
    causes = [f for f in message_findings if not relations_of(f.rule).below_user_code]
    findings = _without_vague(findings, causes, members)
    findings, message_findings = suppress_consequences(findings, message_findings, relations_of)
    findings = _without_vague(findings, message_findings, members)
    recording = Recording(
        entries=tuple(record.recorded),
        ranks=tuple(sorted({r.rank for r in record.recorded})),
        members=record.groups,
    )
    known_ranks = {*record.ranks, *record.labelled, *(p.who.rank for p in processes_seen)} - {-1}
    watchdogs = Watchdogs(reports=tuple(record.overdue), ranks=tuple(sorted(known_ranks)))
    readings = record.instrument_facts(known_members(processes_seen))
    for facts in (make_dumps(processes_seen), recording, watchdogs, *readings):
        new_findings = [
            make_finding(entry, claim_made)
            for entry, claim_made in run_rules(facts, catalogue.entries)
        ]
        if any(m.who.rank < 0 for m in members if m.raised is not None):
            # Who failed without a known rank may be the one for whom all others waited.
            new_findings = [f for f in new_findings if not relations_of(f.rule).names_nobody]
        if facts in (recording, watchdogs):
            new_findings = without_stated_reasons(new_findings, messages)
        findings += new_findings
        if new_findings and facts is watchdogs:  # their words rank by rank say less
            message_findings = [
                f for f in message_findings if not any(_WATCHDOG_WORD in str(e) for e in f.evidence)
            ]
    findings, message_findings = without_repeated_facts(findings, message_findings, relations_of)
    findings = without_wrappers(findings, message_findings)
    message_findings = drop_following_aborts(message_findings, findings)
    message_findings, findings = settle_bare_ends(
        message_findings, findings, messages, relations_of
    )
    last_words = last_resort.unexplained_ends(members, origins, record)
    last_claims = [
        make_finding(entry, known_message_claim(h))
        for h in merge_heard(last_words, ())
        if (entry := catalogue.find_rule(h.rule)) is not None
    ]
    judged = downgrade_severities([*findings, *message_findings], members, record, relations_of)
    last_claims = without_last_resort(last_claims, judged, relations_of)
    judged += downgrade_severities(last_claims, members, record, relations_of)
    generic = _generic_summaries(members)
    stated = [r for r in record.reasons if r.is_stated]
    judged = with_logged_reasons(judged, stated, generic, relations_of)
    judged = with_last_errors(judged, record.heard, relations_of)
    judged = with_logged_reasons(judged, record.reasons, generic, relations_of)
    return order_findings(judged, relations_of)


def _without_vague(
    findings: list[Finding], message_findings: list[Finding], members: Iterable[Member]
) -> list[Finding]:
    """Return the findings without a library's vague exceptions whose cause their file holds."""
    vague_summaries = {
        failure.summary(subject)
        for m in members
        if m.raised is not None and (failure := explain_library_error(m.raised)) is not None
        if failure.is_vague
        for subject in (m.who.name, A_PROCESS)
    }
    files = {
        e.origin.rpartition(":")[0]
        for f in message_findings
        if f.severity is Severity.ERROR
        for e in f.evidence
    } - {""}
    return [
        f
        for f in findings
        if not any(s in f.summary for s in vague_summaries)
        or files.isdisjoint(e.origin.rpartition(":")[0] for e in f.evidence)
    ]


def _generic_summaries(members: Iterable[Member]) -> set[str]:
    """Return what is said of exceptions of which only the words are known, or that only tell that a command
    failed."""
    raised = [m.raised for m in members if m.raised is not None]
    failures = [failure for r in raised if (failure := explain_library_error(r)) is not None]
    return {f.says for f in failures if f.is_generic} | {
        f"raised {r.type}" for r in raised if r.type in CHILD_ERRORS
    }


def make_members(
    processes_found: Iterable[Process],
) -> tuple[tuple[Member, ...], dict[int, list[str]]]:
    """Return one member a process, and by ``worker`` the places where it was seen."""
    members, origins = [], {}
    for process in processes_found:
        members.append(_make_member(process))
        # A traceback says more than a launcher's line.
        glimpses = sorted(process.glimpses, key=lambda g: g.raised is None)
        origins[process.number] = [str(g.origin) for g in glimpses]
    return tuple(members), origins


def _make_member(process: Process) -> Member:
    exits = [g.exit for g in process.glimpses if g.exit is not None]
    raising = [g for g in process.glimpses if g.raised is not None]
    if any(g.exit is not None and g.exit.signal is not None for g in process.glimpses):
        raising = [g for g in raising if not g.doubt]  # a signal ended it, and no exception
    return Member(
        who=process.who,
        worker=process.number,
        phase=Phase.TRAINING,
        round=1,
        raised=raising[-1].raised if raising else None,
        exit=_best_exit(exits),
        stack=process.stack,
    )


def _best_exit(exits: list[Exit]) -> Exit | None:
    """Return the end as reported by the source that knows it best, with the process's own last line."""
    if not exits:
        return None
    best_exit = max(exits, key=_exit_knowledge)
    last_line = next((e.last_line for e in exits if e.last_line), "")
    return (
        best_exit
        if best_exit.last_line
        else msgspec.structs.replace(best_exit, last_line=last_line)
    )


def _doubts_by_exception(glimpses: Iterable[Glimpse]) -> dict[tuple[int, Raised], str]:
    """Return why what a rank raised may have been caught, by rank and exception."""
    return {(g.rank, g.raised): g.doubt for g in glimpses if g.raised is not None and g.doubt}


def _exit_knowledge(end: Exit) -> tuple[bool, float]:
    """Return the sort key of an end. A launcher knows how a process ended; a traceback only that it did."""
    return end.signal is not None or end.ended_at > 0, end.ended_at


def make_dumps(processes_found: Iterable[Process]) -> Dumps:
    """Return the stacks of the ranks, by rank, or by number if the rank is not known."""
    ranks, _ = separate_ranks(list(processes_found))
    return Dumps(
        stacks={p.number: p.stack for p in ranks if p.stack is not None},
        unnamed={p.number: p.who for p in ranks if p.number >= FIRST_UNRANKED_NUMBER},
    )


def _end_findings(
    members: tuple[Member, ...],
    origins: dict[int, list[str]],
    doubts: dict[tuple[int, Raised], str],
    catalogue: Catalogue,
) -> Iterable[Finding]:
    ended_members = tuple(m for m in members if m.exit is not None)
    if not ended_members:
        return
    latest = max(m.exit.ended_at for m in ended_members if m.exit is not None)
    view = JobView(
        # Long after the last end, so that no rule still waits for more to come.
        now=latest + 3600.0,
        launched=0,
        members=ended_members,
        rolled_at=0.0,
        ended=True,
    )
    entries = [e for e in catalogue.entries if e.stage is Stage.EXIT]
    for entry, claim_made in run_rules(view, entries):
        named_members = [m for m in ended_members if m.who in claim_made.who]
        if not named_members:  # another's failure, which the exception of one of them reports
            named_members = [m for m in ended_members if _quotes_exception(claim_made, m)]
        places = list(dict.fromkeys(o for m in named_members for o in origins[m.worker]))[:2]
        origin = ", ".join(places)
        evidence = [
            _with_read_origin(e, named_members, origin)
            for e in claim_made.evidence
            if e.origin not in _LIVE_ORIGINS
        ][:MAX_END_EVIDENCE]
        doubt = _shared_doubt(named_members, doubts)
        if (end_evidence := Evidence(_describe_end(named_members), origin)) not in evidence:
            evidence.append(end_evidence)
        if doubt:
            evidence.append(Evidence(doubt, COUNTER_EVIDENCE))
        amended = msgspec.structs.replace(
            claim_made,
            evidence=tuple(evidence),
            fix=next_step(claim_made, named_members[0] if named_members else None, places),
            since=None,
            certainty=Certainty.LIKELY if doubt else claim_made.certainty,
        )
        yield make_finding(entry, _name_culprit(amended, named_members))


def _name_culprit(claim_made: Claim, named_members: list[Member]) -> Claim:
    """Return the claim about what a library raised, with the culprit by the name that the job uses.

    Who raised it may be a victim; and the number of a process that the job does not name reads like a rank.
    """
    error = named_members[0].raised if named_members else None
    failure = explain_library_error(error) if error is not None else None
    if failure is None or failure.summary(name_members(named_members)) not in claim_made.summary:
        return claim_made
    if not failure.is_own:
        return msgspec.structs.replace(claim_made, who=failure.about)
    if any(not m.who.file.startswith(UNNAMED_PREFIX) for m in named_members):
        return claim_made
    old, new = failure.summary(name_members(named_members)), failure.summary(A_PROCESS)
    return msgspec.structs.replace(claim_made, who=(), summary=claim_made.summary.replace(old, new))


def _quotes_exception(claim_made: Claim, member: Member) -> bool:
    """Return True if the evidence of the claim is the exception that this member raised."""
    if member.raised is None:
        return False
    quoted = f"{member.raised.type}: {member.raised.message[:80]}"
    return any(e.observed.startswith(quoted) for e in claim_made.evidence)


def _shared_doubt(named_members: list[Member], doubts: dict[tuple[int, Raised], str]) -> str:
    """Return why a claim about these members is only likely; "" if it is proven for one of them."""
    exceptions = [(m.who.rank, m.raised) for m in named_members if m.raised is not None]
    doubts_found = [doubts.get(exception, "") for exception in exceptions]
    return doubts_found[0] if doubts_found and all(doubts_found) else ""


def _with_read_origin(evidence: Evidence, named_members: list[Member], origin: str) -> Evidence:
    """Return the evidence with the place where it was read, instead of the log that `allaboard run` would
    write."""
    is_live_log = any(evidence.origin == m.log for m in named_members)
    return msgspec.structs.replace(evidence, origin=origin) if is_live_log else evidence


def _describe_end(named_members: list[Member]) -> str:
    end = named_members[0].exit if named_members else None
    if end is None or named_members[0].raised is not None:
        return "its traceback"
    if end.signal is not None:
        return end.last_line or f"killed by signal {end.signal}"
    return f"exit code {end.code}"
