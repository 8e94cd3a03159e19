"""Runs the catalogue over facts. A rule that crashes becomes a finding about itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from allaboard.facts import Certainty, Claim, Evidence, Finding, JobView, Severity
from allaboard.rules.engine.catalogue import RuleEntry
from allaboard.rules.engine.families import family_of, retry_verdict
from allaboard.rules.engine.shell_words import quote_foreign_names, unsafe_names


def run_rules(facts: object, entries: Iterable[RuleEntry]) -> Iterator[tuple[RuleEntry, Claim]]:
    """Yield every claim that the rules which read this type of facts make, in the order of the rules."""
    names: tuple[str, ...] | None = None
    for entry in entries:
        if not isinstance(facts, entry.rule.reads) or _nothing_to_read(facts, entry.rule.needs):
            continue
        try:
            claims = list(entry.rule.check(facts))
        except Exception as error:
            claims = [_crash(error)]
        for claim in claims:
            if isinstance(facts, JobView):
                names = unsafe_names(facts) if names is None else names
                claim = quote_foreign_names(claim, names) if names else claim
            yield entry, claim


def _nothing_to_read(facts: object, needs: tuple[str, ...]) -> bool:
    return bool(needs) and isinstance(facts, JobView) and not any(map(facts.any_member_has, needs))


def make_finding(
    entry: RuleEntry,
    claim: Claim,
    at: str = "",
    since: str | None = None,
    seconds_to_find: float | None = None,
) -> Finding:
    """Return the finding that a rule's claim is, with its times, if they are known."""
    return Finding(
        rule=entry.code,
        name=entry.name,
        severity=claim.severity,
        certainty=claim.certainty,
        stage=entry.stage,
        who=claim.who,
        summary=claim.summary,
        evidence=claim.evidence,
        fix=claim.fix,
        at=at,
        since=since,
        seconds_to_find=seconds_to_find,
        where=claim.where,
        retry=retry_verdict(family_of(entry.code), entry.rule, claim),
    )


def _crash(error: Exception) -> Claim:
    import traceback

    frame = traceback.extract_tb(error.__traceback__)[-1]
    return Claim(
        summary=f"this rule itself failed and could not judge: {type(error).__name__}: {error}",
        evidence=(Evidence(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}", "traceback"),),
        fix="report this line with the run folder; the other rules are not affected",
        severity=Severity.INFO,
        certainty=Certainty.UNKNOWN,
    )
