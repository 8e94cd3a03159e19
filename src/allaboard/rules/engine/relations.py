"""How findings relate: which follow from others, and in which order they are printed. Pure.

What a rule's findings mean for those of others is declared on the rule (``contracts.Relations``), or holds
for a whole family of rules and is in a table here: no other module decides between findings by code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from allaboard.contracts import Relations
from allaboard.facts import Certainty, Claim, Evidence, Finding, Severity
from allaboard.rules.engine.catalogue import RuleEntry
from allaboard.rules.engine.families import family_of

RelationsOf = Callable[[str], Relations]
"""The relations that the rule with a code declares."""

SEVERITY_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}

_LOST_PEER_CAUSES = ("EXIT", "HANG", "JOIN", "NET")
"""Families that report why peers are lost sooner or later: a member failed, stands still, never joined, or
cannot be reached."""
_STALLS = ("HANG",)
"""Families that report members which stand still."""
_STALL_CAUSES = (*_STALLS, "DATA", "PS")
"""Families of which a warning that has a beginning says why a job stands still."""
_ABSENCES = ("JOIN",)
"""Families that report on who has joined: a member that was not seen may still be on its way."""
_LOG_CAUSES = ("LOG", "DUMP", "NET", "PS", "JOIN")
"""Families that a job's logs may add to what its run found itself: they report causes, not consequences."""

_QUOTED_CHARACTERS = 80
"""Characters of an exception's first line that must occur in a message for both to be the same failure."""


def declared_relations(entries: Iterable[RuleEntry]) -> RelationsOf:
    """Return a function from a rule's code to its relations; a code that no entry has declares none."""
    by_code = {entry.code: entry.rule.relations for entry in entries}
    none = Relations()
    return lambda code: by_code.get(code, none)


def explains_lost_peers(code: str) -> bool:
    """Return True if findings of this rule say why members lose their peers sooner or later."""
    return family_of(code) in _LOST_PEER_CAUSES


def reports_stall(code: str) -> bool:
    """Return True if findings of this rule report members that stand still."""
    return family_of(code) in _STALLS


def reports_absence(code: str) -> bool:
    """Return True if findings of this rule depend on who has joined, which a short look cannot prove."""
    return family_of(code) in _ABSENCES


def reports_waiting(relations: Relations) -> bool:
    """Return True for a rule about members that waited for others, or lost them."""
    return relations.consequence_only or relations.reports_silence or relations.reports_wait


def reports_loss(relations: Relations) -> bool:
    """Return True for a rule about members that went away, or sent nothing more."""
    return relations.consequence_only or relations.reports_silence


def may_join_run(code: str) -> bool:
    """Return True if logs may add findings of this rule to what the run of the job found itself."""
    return family_of(code) in _LOG_CAUSES


def suppress_consequences(
    ends: Sequence[Finding], messages: Sequence[Finding], relations_of: RelationsOf
) -> tuple[list[Finding], list[Finding]]:
    """Return the findings on how members ended, and those that log messages gave, without consequences.

    A message that explains an exception takes the exception's place among the messages.
    """
    proven = [
        f for f in messages if f.certainty is Certainty.CERTAIN and f.severity is Severity.ERROR
    ]
    beginning_known = any(relations_of(f.rule).begins_failure for f in (*ends, *proven))
    ends_tell_it = any(relations_of(f.rule).begins_failure for f in ends)
    if not ends_tell_it:
        # The message that a member logged about its lost peer says more than its own end.
        ends = [f for f in ends if not relations_of(f.rule).consequence_only]
    patterns = [p for f in messages if (p := relations_of(f.rule).raised_as)]
    if patterns:
        ends = [f for f in ends if not _shows_any(f, patterns)]
        beginning_known = True
    named = {f.rule for f in ends if relations_of(f.rule).replaces_message}
    named |= {code for f in ends for code in relations_of(f.rule).explains}
    messages = [f for f in messages if f.rule not in named]
    ends, messages = _merge_exceptions(ends, messages, relations_of)
    failed = [f for f in ends if relations_of(f.rule).begins_failure]
    messages = _without_explained_silence(messages, failed, relations_of)
    messages = _without_losses_after_interruption(messages, relations_of)
    if beginning_known:
        messages = [f for f in messages if not relations_of(f.rule).consequence_only]
    return list(ends), messages


def without_raised(
    ends: Iterable[Finding], codes: Iterable[str], relations_of: RelationsOf
) -> list[Finding]:
    """Return the findings on how members ended without those that the rules with these codes explain.

    An exit code or a signal alone is explained by its code, too; an exception says more than that.
    """
    explained = set(codes)
    patterns = [p for code in explained if (p := relations_of(code).raised_as)]
    return [
        f
        for f in ends
        if not _shows_any(f, patterns)
        and (f.rule not in explained or relations_of(f.rule).reports_exception)
    ]


def without_repeated(
    comparisons: Iterable[Finding], judgements: Iterable[Finding], relations_of: RelationsOf
) -> list[Finding]:
    """Return the findings of a comparison of environments without what the rules on the processes
    themselves, which know more of them, have said already."""
    said = {f.rule for f in judgements}
    return [f for f in comparisons if said.isdisjoint(relations_of(f.rule).follows_from)]


def without_unknown_causes(
    judgements: Iterable[Finding], comparisons: Iterable[Finding]
) -> list[Finding]:
    """Return the findings on members that wait in init without those that know no cause, if a comparison of
    environments is certain of an error: that is why they do not meet."""
    is_known = any(
        f.certainty is Certainty.CERTAIN and f.severity is Severity.ERROR for f in comparisons
    )
    return [f for f in judgements if not is_known or f.certainty is not Certainty.UNKNOWN]


def without_interruption(
    findings: Iterable[Finding], relations_of: RelationsOf
) -> tuple[Finding, ...]:
    """Return findings from the logs of a run that its user interrupted, without that and what followed."""
    relations = ((f, relations_of(f.rule)) for f in findings)
    return tuple(f for f, r in relations if not (r.interruption or r.consequence_only))


def without_last_resort(
    last: Iterable[Finding], findings: Sequence[Finding], relations_of: RelationsOf
) -> list[Finding]:
    """Return the findings of the last resort that others leave room for.

    None is left beside an error or an interruption, nor in a file that another finding was read in.
    """
    if any(f.severity is Severity.ERROR or relations_of(f.rule).interruption for f in findings):
        return []
    files = {_file(e) for f in findings for e in f.evidence} - {""}
    return [f for f in last if files.isdisjoint(map(_file, f.evidence))]


def without_explained_last_resort(
    claims: Sequence[tuple[RuleEntry, Claim]],
) -> list[tuple[RuleEntry, Claim]]:
    """Return the claims about a live job, without what follows from others of them, and without those of the
    last resort if another one explains why it stands still: an error, or a member that others wait for."""
    claims = [c for c in claims if not _follows_from_any(*c, claims)]
    is_explained = any(_explains_stall(entry, claim) for entry, claim in claims)
    return [c for c in claims if not (is_explained and c[0].rule.relations.last_resort)]


def _follows_from_any(
    entry: RuleEntry, claim: Claim, claims: Iterable[tuple[RuleEntry, Claim]]
) -> bool:
    """Return True if a rule from which this one follows names the same members now, be it only as likely."""
    causes = entry.rule.relations.follows_from if entry.rule.passes else ()
    return bool(causes) and any(
        cause.code in causes and {*claim.who} <= {*cause_claim.who} for cause, cause_claim in claims
    )


def _explains_stall(entry: RuleEntry, claim: Claim) -> bool:
    relations = entry.rule.relations
    if relations.last_resort or relations.measured or claim.severity is Severity.INFO:
        return False
    is_about_stall = family_of(entry.code) in _STALL_CAUSES and claim.since is not None
    return claim.severity is Severity.ERROR or is_about_stall


def _file(evidence: Evidence) -> str:
    return evidence.origin.rpartition(":")[0]


def order_findings(findings: Iterable[Finding], relations_of: RelationsOf) -> tuple[Finding, ...]:
    """Return the findings by severity; of one severity, those first that precede all other ends."""

    def key(finding: Finding) -> tuple[int, bool]:
        certain = finding.certainty is Certainty.CERTAIN
        precedes_all = certain and relations_of(finding.rule).precedes_all
        return SEVERITY_ORDER[finding.severity], not precedes_all

    return tuple(sorted(findings, key=key))


def _shows_any(finding: Finding, patterns: Sequence[str]) -> bool:
    return any(re.search(p, str(e)) for p in patterns for e in finding.evidence)


def _merge_exceptions(
    ends: Iterable[Finding], messages: Iterable[Finding], relations_of: RelationsOf
) -> tuple[list[Finding], list[Finding]]:
    """Return the ends without exceptions that quote a failure below the user's code, and the messages.

    Such a message takes over the exception's members, and as evidence the line where it was raised: that line
    is not what needs a fix.
    """
    unexplained, explained = [], list(messages)
    for end in ends:
        raised = ""
        if end.evidence and relations_of(end.rule).reports_exception:
            raised = end.evidence[0].observed
        number = next(
            (
                n
                for n, f in enumerate(explained)
                if relations_of(f.rule).below_user_code and _quotes(f, raised)
            ),
            None,
        )
        if number is None:
            unexplained.append(end)
            continue
        raised_here = Evidence("raised here", end.evidence[0].origin)
        message_evidence, *more = explained[number].evidence
        explained[number] = msgspec.structs.replace(
            explained[number], who=end.who, evidence=(message_evidence, raised_here, *more)
        )
    return unexplained, explained


def _quotes(message: Finding, raised: str) -> bool:
    """Return True if ``message`` is the line that the exception ``raised`` ("Type: text") printed."""
    text = raised.partition(": ")[2].partition("\n")[0].strip()[:_QUOTED_CHARACTERS]
    return bool(text) and any(text in e.observed for e in message.evidence)


def _without_explained_silence(
    messages: Iterable[Finding], failed: Iterable[Finding], relations_of: RelationsOf
) -> list[Finding]:
    """Return the messages without lost heartbeats of workers that are known to have ended: they send none.

    Nor do they come to collectives: who waits for them there, or for nobody that it can name, is a victim.
    """
    # An exit code alone may be that of a victim, too.
    proven = [
        f
        for f in failed
        if f.certainty is Certainty.CERTAIN
        and (relations_of(f.rule).reports_exception or relations_of(f.rule).replaces_message)
    ]
    ended = {w.index for f in failed for w in f.who if w.rank >= 0}
    # A log that names no rank is that of a member which the others name.
    unnamed = sum(not any(w.rank >= 0 or w.index >= 0 for w in f.who) for f in proven)
    return [
        f
        for f in messages
        if not (
            (
                relations_of(f.rule).reports_silence
                and (_all_among(f, ended) or 0 < len(f.who) <= unnamed)
            )
            or (
                relations_of(f.rule).reports_wait
                and proven
                and (not f.who or _all_among(f, ended) or len(f.who) <= unnamed)
            )
        )
    ]


def _all_among(finding: Finding, indices: set[int]) -> bool:
    """Return True if the finding names members, and only workers with these indices."""
    return bool(finding.who) and all(w.job == "worker" and w.index in indices for w in finding.who)


def _without_losses_after_interruption(
    messages: Sequence[Finding], relations_of: RelationsOf
) -> list[Finding]:
    """Return the messages without peers that were lost after the interruption that the same file reports.

    A peer that was lost before it may be the reason for the interruption.
    """
    interrupted_at = dict(
        position
        for f in messages
        if relations_of(f.rule).interruption and (position := _file_and_line(f)) is not None
    )
    remaining = []
    for message in messages:
        position = _file_and_line(message) if relations_of(message.rule).consequence_only else None
        if position is None or position[1] < interrupted_at.get(position[0], position[1] + 1):
            remaining.append(message)
    return remaining


def _file_and_line(finding: Finding) -> tuple[str, int] | None:
    """Return where its first evidence was read; None if that is no line of a file."""
    file, _, line = finding.evidence[0].origin.rpartition(":") if finding.evidence else ("", "", "")
    return (file, int(line)) if line.isdecimal() else None
