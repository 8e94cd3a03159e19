"""Ends of processes whose reason stands elsewhere: a signal, an exit code or a parent's report is no cause.

A process aborts itself once it has logged why. Ray, DeepSpeed's launcher, vLLM and SGLang see only that a
child is gone. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from allaboard.analysis.log_ends.preceding_errors import likely_reason
from allaboard.diagnosis.readers.fatal_log import ENDS_IN_ERROR
from allaboard.facts import Evidence, Finding, Heard, LoggedReason, Severity
from allaboard.rules.engine.relations import RelationsOf, reports_waiting

ENDED_WITH = "a process ended with "
"""Begins the sentence about an exception whose cause is known by its last line."""
_SIGNAL = "killed by SIGABRT"
_EXIT_WORDS = re.compile(
    r"\b(?:exit(?:s|ed)?|return(?:s|ed)?|status) (?:with |code|status)|exitcode", re.I
)
_AFTER_LOG = ", after its log said: "
"""Joins what a process, or another one that writes to its log, had reported to the sentence on its end."""
_BY_LAUNCHER = re.compile(r"^the launcher or the shell reports")
_VAGUE_END = re.compile(
    r"\b(?:lost a member that the message does not name|lost [a-z]+ \d+: "
    r"|ended with an exception: |was ended by SIG"
    r"|aborted itself: |(?:launcher or the shell|launcher) reports|as whoever started it reports"
    r"|whose name is missing here|the log ends in an error: )"
)
"""Sentences on an end that quote it, and do not know the cause."""
_OWN_WORDS = re.compile(r"aborted itself: |was ended by SIG|the log ends in an error: |reports")
"""Of these, those that quote the last that was written: no other reason comes later."""
_SIGNAL_END = re.compile(r"was killed by (?:SIG(?:ABRT|SEGV|KILL)|signal \d+)$")
"""Ends a sentence that tells of an end nothing but the signal."""
_LAUNCHERS_WORD = "aborted (SIGABRT)"
"""In the launcher's line on a child that aborted, which gives no reason."""


def drop_explained_aborts(
    findings: Sequence[Finding], messages: Iterable[Heard], relations_of: RelationsOf
) -> list[Finding]:
    """Return the findings without ends by SIGABRT of processes that logged the reason in the same file.

    JAX's client, XLA's rendezvous and NCCL's watchdog end their process so.
    """
    reasons = (h for h in messages if relations_of(h.rule).ends_by_abort)
    speakers = {(s.place.file, s.rank) for h in reasons for s in h.speakers}
    return [f for f in findings if not (_SIGNAL in f.summary and _is_by_speaker(f, speakers))]


def drop_following_aborts(
    message_findings: Sequence[Finding], findings: Iterable[Finding]
) -> list[Finding]:
    """Return the findings without a launcher's line on a child that aborted, if anything else failed.

    NCCL's watchdog and gloo abort a process that waits for one that has failed, and an assertion or an
    uncaught C++ exception is reported by itself.
    """
    aborts = [f for f in message_findings if _LAUNCHERS_WORD in f.summary]
    other_findings = [f for f in message_findings if f not in aborts]
    has_cause = any(f.severity is Severity.ERROR for f in (*other_findings, *findings))
    return other_findings if has_cause else list(message_findings)


def _is_by_speaker(finding: Finding, speakers: set[tuple[str, int]]) -> bool:
    places = {e.origin for e in finding.evidence}
    ranks = {w.rank for w in finding.who}
    # Where a launcher's file does not tell who wrote the reason, it is one of those that it lists.
    return any(
        (rank in ranks or rank < 0) and any(p.startswith(f"{file}:") for p in places)
        for file, rank in speakers
    )


def without_explained_ends(heard: Sequence[Heard], relations_of: RelationsOf) -> list[Heard]:
    """Return the messages without bare ends of processes that wrote the reason, and without what followed.

    Whoever ended without a word took its peers along: they wait for it, or lose it, and write so. Where
    every process that ended wrote something, or where nobody can tell who wrote it, the words count. Of
    several ends the first is left: it took the others along.
    """
    ends = [h for h in heard if h.bare_end]
    if not ends:
        return list(heard)
    reasons = [
        h
        for h in heard
        if not h.bare_end and h.severity is Severity.ERROR and not relations_of(h.rule).last_resort
    ]
    writers = {s.pid for h in reasons for s in h.speakers}
    waits = [h for h in reasons if reports_waiting(relations_of(h.rule))]
    silent = [h for h in ends if h.pid and h.pid not in writers]
    if not reasons:
        return [h for h in heard if h not in ends[1:]]
    if silent and len(waits) == len(reasons) and 0 not in writers:
        return [h for h in heard if h is silent[0] or not (h in ends or h in waits)]
    return [h for h in heard if h not in ends]


def settle_bare_ends(
    message_findings: Sequence[Finding],
    findings: Sequence[Finding],
    heard: Iterable[Heard],
    relations_of: RelationsOf,
) -> tuple[list[Finding], list[Finding]]:
    """Return the findings from messages without bare ends that another one explains, and the other findings
    without members that only lost or awaited who ended so."""
    findings = _without_bare_exits(message_findings, findings, relations_of)
    bare_texts = {h.says for h in heard if h.bare_end}
    bare = [f for f in message_findings if f.summary in bare_texts]
    explaining = [f for f in message_findings if f not in bare]
    followed = [f for f in findings if reports_waiting(relations_of(f.rule))]
    causes = [f for f in (*explaining, *findings) if f not in followed]
    if not bare:
        return list(message_findings), list(findings)
    if any(f.severity is Severity.ERROR for f in causes):
        return explaining, list(findings)
    return list(message_findings), [f for f in findings if f not in followed]


def with_last_errors(
    findings: Sequence[Finding], heard: Iterable[Heard], relations_of: RelationsOf
) -> list[Finding]:
    """Return the findings, exit codes with the error that the same file quotes, if there is nothing else.

    A launcher tells only that a process failed; the process has mostly written why.
    """
    errors = [f for f in findings if f.severity is Severity.ERROR]
    if not errors or not all(relations_of(f.rule).bare_exit for f in errors):
        return list(findings)
    errors = [f for f in errors if _AFTER_LOG not in f.summary]
    quoted = {
        h.speakers[0].place.file: h for h in heard if h.says.startswith((ENDS_IN_ERROR, ENDED_WITH))
    }
    return [_with_last_error(f, quoted) if f in errors else f for f in findings]


def _with_last_error(finding: Finding, quoted: Mapping[str, Heard]) -> Finding:
    files = (_file(e) for e in finding.evidence)
    message = next((quoted[f] for f in files if f in quoted), None)
    if message is None:
        return finding
    speaker = message.speakers[0]
    if speaker.rank >= 0 and speaker.rank not in {w.rank for w in finding.who}:
        return finding
    words = message.says.removeprefix(ENDS_IN_ERROR).removeprefix(ENDED_WITH)
    if _EXIT_WORDS.search(words):
        return finding  # the same end, in a launcher's own words
    return msgspec.structs.replace(
        finding,
        summary=f"{finding.summary}{_AFTER_LOG}{words[:160]}",
        evidence=(*finding.evidence, Evidence(speaker.line, str(speaker.place))),
        fix=finding.fix if message.fix.startswith("collect ") else message.fix,
    )


def with_logged_reasons(
    findings: Sequence[Finding],
    reasons: Sequence[LoggedReason],
    vague_summaries: Collection[str],
    relations_of: RelationsOf,
) -> list[Finding]:
    """Return the findings, errors that only say how a process ended with the error that its log reports
    before.

    ``vague_summaries`` are parts of sentences about exceptions whose own words do not say the cause.
    """
    return [
        _with_logged_reason(f, reasons)
        if f.severity is not Severity.INFO and _is_vague(f, vague_summaries, relations_of)
        else f
        for f in findings
    ]


def _is_vague(
    finding: Finding, vague_summaries: Collection[str], relations_of: RelationsOf
) -> bool:
    relations = relations_of(finding.rule)
    if _AFTER_LOG in finding.summary:
        return False
    return (
        relations.bare_exit
        or (relations.last_resort and _VAGUE_END.search(finding.summary) is not None)
        or _SIGNAL_END.search(finding.summary) is not None
        or any(summary in finding.summary for summary in vague_summaries)
    )


def _with_logged_reason(finding: Finding, reasons: Sequence[LoggedReason]) -> Finding:
    files = {r.speaker.place.file for r in reasons}
    places = [place for e in finding.evidence for place in e.origin.split(", ")]
    for place in places:
        file, _, line = place.rpartition(":")
        if file not in files or not line.isdigit():
            continue
        in_file = [r for r in reasons if r.speaker.place.file == file]
        or_after = _OWN_WORDS.search(finding.summary) is None
        reason = likely_reason(in_file, int(line), or_after=or_after)
        if reason is None or reason.says[:80] in finding.summary:
            return finding
        if reason.is_consequence and _names_something(finding.fix):
            return finding  # the end's own words say more than a failure that is passed on
        return msgspec.structs.replace(
            finding,
            summary=f"{finding.summary}{_AFTER_LOG}{reason.says[:160]}",
            evidence=(*finding.evidence, Evidence(reason.speaker.line, str(reason.speaker.place))),
            fix=_fix_after(finding, reason),
        )
    return finding


def _names_something(advice: str) -> bool:
    """Return True if the advice names more than a log to read or a line to look at."""
    return not advice.startswith(("collect ", "read ", "get ", "fix ", "see "))


def _fix_after(finding: Finding, reason: LoggedReason) -> str:
    """Return the advice on the reason, or on the end if that names something to do."""
    if _BY_LAUNCHER.search(finding.summary) and not finding.fix.startswith("collect "):
        return finding.fix
    end_advice = finding.fix.partition("; then collect")[0].partition("; the whole traceback")[0]
    if not reason.fix.startswith("collect "):
        # What the end's own words name comes first: what stands before it may be another matter.
        is_new = _names_something(end_advice) and end_advice not in reason.fix
        return f"{end_advice}; then {reason.fix}" if is_new else reason.fix
    if finding.summary.endswith("ended by SIGKILL: Killed"):
        place = reason.speaker.place
        return (
            f"read what stands before {place}: what it reports ended the process; then {reason.fix}"
        )
    return finding.fix


def _without_bare_exits(
    message_findings: Sequence[Finding], findings: Sequence[Finding], relations_of: RelationsOf
) -> list[Finding]:
    """Return the findings without exit codes of processes in whose file a message says why one failed."""
    files = {
        _file(e)
        for f in message_findings
        if f.severity is Severity.ERROR and not reports_waiting(relations_of(f.rule))
        for e in f.evidence[:1]
    } - {""}
    return [
        f
        for f in findings
        if not (relations_of(f.rule).bare_exit and files & {_file(e) for e in f.evidence})
    ]


def _file(evidence: Evidence) -> str:
    return evidence.origin.rpartition(":")[0]
