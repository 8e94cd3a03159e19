"""The messages of all files: each once, without what others explain, and without what only refers to a cause.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from allaboard.analysis.failures.launcher_errors import refers_to_error_above
from allaboard.analysis.log_messages import merge_heard
from allaboard.diagnosis.instruments.nccl_start import STARTS_NCCL
from allaboard.diagnosis.logs.end_reasons import without_explained_ends
from allaboard.diagnosis.logs.job_starts import start_messages
from allaboard.diagnosis.logs.message_relations import relate_messages
from allaboard.diagnosis.logs.nccl.absentees import with_absentees
from allaboard.diagnosis.logs.nccl.consequences import without_nccl_consequences
from allaboard.diagnosis.logs.nccl.kernel_assertions import with_kernel_assertions
from allaboard.diagnosis.logs.run_readers import LogRecord
from allaboard.facts import Finding, Heard, Severity
from allaboard.formats.dumps.cut_tracebacks import BREAKS_OFF
from allaboard.rules.engine.catalogue import Catalogue
from allaboard.rules.engine.relations import (
    RelationsOf,
    declared_relations,
    reports_loss,
    reports_waiting,
)


def related_messages(
    record: LogRecord, catalogue: Catalogue, ends: Iterable[Finding]
) -> list[Heard]:
    """Return the messages of all files, each once, without those that others explain."""
    # torchrun lists those that it ended itself: they wrote where the others wrote that they wait.
    waiting_logs = {s.place.file for h in record.heard if h.awaits for s in h.speakers}
    exits = [g for g in record.glimpses if g.exit is not None and g.exit.ended_at > 0]
    listed_ranks = {g.rank for g in exits if g.origin.file in waiting_logs}
    relations_of = declared_relations(catalogue.entries)
    wait_was_ended = any(h.ended_wait or relations_of(h.rule).interruption for h in record.heard)
    # Of whom all but the beginning of a traceback is missing, nobody knows whether it waited as well.
    cut_ranks = {s.rank for h in record.heard if BREAKS_OFF in h.says for s in h.speakers}
    cut_ranks -= {s.rank for h in record.heard if BREAKS_OFF not in h.says for s in h.speakers}
    ranks_by_file = dict(zip(record.names, record.ranks, strict=True))
    merged = merge_heard(
        [*record.heard, *start_messages(record.starts, wait_was_ended, ranks_by_file)],
        {*record.ranks, *record.labelled, *listed_ranks} - cut_ranks,
    )
    merged = tuple(without_nccl_consequences(with_kernel_assertions(merged)))
    starting = [h for h in merged if STARTS_NCCL in h.says]
    merged = tuple(h for h in merged if h not in starting)
    waits = frozenset(h.rule for h in merged if reports_waiting(relations_of(h.rule)))
    failed_rules = frozenset(
        f.rule
        for f in ends
        if f.severity is Severity.ERROR and not relations_of(f.rule).consequence_only
    )
    losses = frozenset(h.rule for h in merged if reports_loss(relations_of(h.rule)))
    related = relate_messages(merged, record.last_words, waits, failed_rules, losses)
    related = _without_vague_nccl(related)
    related = _without_waits_for_failed(without_explained_ends(related, relations_of), relations_of)
    empty_ranks = {ranks_by_file.get(name, -1) for name in record.empty_files} - {-1}
    related = with_absentees(
        [*related, *starting], tuple(ends), empty_ranks, len({*record.ranks} - {-1})
    )
    reasons = [
        h
        for h in related
        if not h.ended_wait
        and h.severity is Severity.ERROR
        and not relations_of(h.rule).consequence_only
        and not relations_of(h.rule).last_resort
    ]
    # What ended the job ended what stood still, or what had failed.
    return [h for h in related if not (h.ended_wait and (reasons or failed_rules))]


_VAGUE_NCCL = re.compile(r"NCCL failed: unhandled (?:system|cuda) error$")
"""All that PyTorch passes on of an error of which NCCL itself has written more."""


def _without_vague_nccl(heard: list[Heard]) -> list[Heard]:
    """Return the messages without NCCL's bare name of an error, if NCCL wrote of it in its own words."""
    vague = [h for h in heard if _VAGUE_NCCL.match(h.says)]
    own_words = [h for h in heard if vague and h.rule == vague[0].rule and h not in vague]
    return [h for h in heard if not (own_words and h in vague)]


def _without_waits_for_failed(heard: list[Heard], relations_of: RelationsOf) -> list[Heard]:
    """Return the messages without those of ranks that waited for a rank whose GPU failed, if it wrote so.

    It did not come to the collective in which they waited, and is not named again for that.
    """
    failed = {
        s.rank
        for h in heard
        if h.severity is Severity.ERROR
        and relations_of(h.rule).below_user_code
        and relations_of(h.rule).ends_by_abort
        for s in h.speakers
    } - {-1}
    return [
        h
        for h in heard
        if not (
            failed
            and relations_of(h.rule).reports_wait
            and failed.isdisjoint(s.rank for s in h.speakers)
            and {w.rank for w in h.about} <= failed
        )
    ]


def without_wrappers(
    findings: Sequence[Finding], message_findings: Sequence[Finding]
) -> list[Finding]:
    """Return the findings without exceptions that only refer to a cause, if another one reports a failure."""
    wrappers = [f for f in findings if any(refers_to_error_above(e.observed) for e in f.evidence)]
    causes = [f for f in (*findings, *message_findings) if f not in wrappers]
    has_cause = any(f.severity is Severity.ERROR for f in causes)
    return [f for f in findings if not (has_cause and f in wrappers)]
