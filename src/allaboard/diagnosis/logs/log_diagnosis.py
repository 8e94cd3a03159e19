"""From testimony to findings: glimpses become members, and the rules for a job that ended read them.
Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from allaboard.analysis.log_messages import claim, together
from allaboard.analysis.stacks.unranked_processes import FIRST_UNRANKED_NUMBER
from allaboard.diagnosis.logs.abort_reasons import told_why
from allaboard.diagnosis.logs.fix_advice import next_step
from allaboard.diagnosis.logs.non_rank_processes import apart
from allaboard.diagnosis.logs.processes import Process, processes
from allaboard.diagnosis.logs.run_readers import Record
from allaboard.diagnosis.logs.severity_downgrade import AGAINST, eased
from allaboard.facts import (
    Certainty,
    Dumps,
    Evidence,
    Exit,
    Finding,
    Glimpse,
    JobView,
    Member,
    Phase,
    Raised,
    Recording,
    Stage,
    Watchdogs,
)
from allaboard.rules.engine.catalogue import Catalogue
from allaboard.rules.engine.evaluate import make_finding, run_rules
from allaboard.rules.engine.relations import (
    declared_relations,
    order_findings,
    suppress_consequences,
)

_WATCHDOG = "WorkNCCL("
"""What a watchdog's line says of the collective."""
_GUESSED = ("wait status", "its last line", "black box", "its control group")
"""Origins that rules give to what is seen live; after the fact it was read."""


def findings(record: Record, catalogue: Catalogue) -> tuple[Finding, ...]:
    """Everything that the testimony means, causes before consequences."""
    seen = processes(record.glimpses, len(record.nodes) < 2)
    members, origins = people(seen)
    found = [*_ends(members, origins, _doubts(record.glimpses), catalogue)]
    relations_of = declared_relations(catalogue.entries)
    found = told_why(found, record.heard, relations_of)
    spoken = list(_messages(record, catalogue))
    found, spoken = suppress_consequences(found, spoken, relations_of)
    recording = Recording(
        entries=tuple(record.recorded),
        ranks=tuple(sorted({r.rank for r in record.recorded})),
        members=record.groups,
    )
    here = {*record.logs, *record.labelled, *(p.who.rank for p in seen)} - {-1}
    watchdogs = Watchdogs(words=tuple(record.overdue), known=tuple(sorted(here)))
    for facts in (dumps(seen), recording, watchdogs):
        told = [make_finding(entry, made) for entry, made in run_rules(facts, catalogue.entries)]
        if any(m.who.rank < 0 for m in members if m.raised is not None):
            # Who failed without a known rank may be the one for whom all others waited.
            told = [f for f in told if not relations_of(f.rule).names_nobody]
        found += told
        if told and facts is watchdogs:  # their words rank by rank say less
            spoken = [f for f in spoken if not any(_WATCHDOG in str(e) for e in f.evidence)]
    return order_findings(eased([*found, *spoken], members, record, relations_of), relations_of)


def people(found: Iterable[Process]) -> tuple[tuple[Member, ...], dict[int, list[str]]]:
    """One member a process, and where each was seen, by ``worker``."""
    members, origins = [], {}
    for one in found:
        members.append(_member(one))
        # A traceback says more than a launcher's line.
        told = sorted(one.seen, key=lambda g: g.raised is None)
        origins[one.number] = [str(g.origin) for g in told]
    return tuple(members), origins


def _member(one: Process) -> Member:
    exits = [g.exit for g in one.seen if g.exit is not None]
    told = [g for g in one.seen if g.raised is not None]
    if any(g.exit is not None and g.exit.signal is not None for g in one.seen):
        told = [g for g in told if not g.doubt]  # a signal ended it, and no exception
    return Member(
        who=one.who,
        worker=one.number,
        phase=Phase.TRAINING,
        round=1,
        raised=told[-1].raised if told else None,
        exit=_exit(exits),
        stack=one.stack,
    )


def _exit(exits: list[Exit]) -> Exit | None:
    """The end as who knows it best tells it, with the process' own last words."""
    if not exits:
        return None
    best = max(exits, key=_told)
    said = next((e.last_line for e in exits if e.last_line), "")
    return best if best.last_line else msgspec.structs.replace(best, last_line=said)


def _doubts(glimpses: Iterable[Glimpse]) -> dict[tuple[int, Raised], str]:
    """Why what a rank raised may have been caught."""
    return {(g.rank, g.raised): g.doubt for g in glimpses if g.raised is not None and g.doubt}


def _told(end: Exit) -> tuple[bool, float]:
    """A launcher knows how a process ended; a traceback only that it did."""
    return end.signal is not None or end.at > 0, end.at


def dumps(found: Iterable[Process]) -> Dumps:
    """The stacks of those that take part, by rank, or by number where no rank is known."""
    ranks, _ = apart(list(found))
    return Dumps(
        stacks={p.number: p.stack for p in ranks if p.stack is not None},
        unnamed={p.number: p.who for p in ranks if p.number >= FIRST_UNRANKED_NUMBER},
    )


def _ends(
    members: tuple[Member, ...],
    origins: dict[int, list[str]],
    doubts: dict[tuple[int, Raised], str],
    catalogue: Catalogue,
) -> Iterable[Finding]:
    ended = tuple(m for m in members if m.exit is not None)
    if not ended:
        return
    latest = max(m.exit.at for m in ended if m.exit is not None)
    view = JobView(now=latest + 3600.0, launched=0, members=ended, rolled_at=0.0, ended=True)
    entries = [e for e in catalogue.entries if e.rule.stage is Stage.EXIT]
    for entry, made in run_rules(view, entries):
        guilty = [m for m in ended if m.who in made.who]
        where = list(dict.fromkeys(o for m in guilty for o in origins[m.worker]))[:2]
        read = ", ".join(where)
        evidence = [_here(e, guilty, read) for e in made.evidence if e.origin not in _GUESSED][:2]
        doubt = _doubt(guilty, doubts)
        if (how := Evidence(_how(guilty), read)) not in evidence:
            evidence.append(how)
        if doubt:
            evidence.append(Evidence(doubt, AGAINST))
        told = msgspec.structs.replace(
            made,
            evidence=tuple(evidence),
            fix=next_step(made, guilty[0] if guilty else None, where),
            since=None,
            certainty=Certainty.LIKELY if doubt else made.certainty,
        )
        yield make_finding(entry, told)


def _doubt(guilty: list[Member], doubts: dict[tuple[int, Raised], str]) -> str:
    """Why a claim about these is only likely; "" where one of them is proven."""
    raised = [(m.who.rank, m.raised) for m in guilty if m.raised is not None]
    found = [doubts.get(one, "") for one in raised]
    return found[0] if found and all(found) else ""


def _here(one: Evidence, guilty: list[Member], read: str) -> Evidence:
    """With the place where it was read, for the log that `allaboard run` would have written."""
    live = any(one.origin == m.log for m in guilty)
    return msgspec.structs.replace(one, origin=read) if live else one


def _how(guilty: list[Member]) -> str:
    end = guilty[0].exit if guilty else None
    if end is None or guilty[0].raised is not None:
        return "its traceback"
    if end.signal is not None:
        return end.last_line or f"killed by signal {end.signal}"
    return f"exit code {end.code}"


def _messages(record: Record, catalogue: Catalogue) -> Iterable[Finding]:
    # torchrun lists those that it ended itself: they wrote where the others wrote that they wait.
    waits = {s.place.file for h in record.heard if h.awaits for s in h.speakers}
    seen = [g for g in record.glimpses if g.exit is not None and g.exit.at > 0]
    listed = {g.rank for g in seen if g.origin.file in waits}
    for one in together(record.heard, {*record.logs, *record.labelled, *listed}):
        entry = catalogue.find_rule(one.rule)
        if entry is not None:
            yield make_finding(entry, claim(one))
