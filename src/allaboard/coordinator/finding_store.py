"""The findings of a job. Every finding is announced once, with the time at which it was made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from allaboard.analysis.parameter_servers import only_serves
from allaboard.analysis.resources.host_load import is_whole_job_training
from allaboard.contracts import Relations
from allaboard.facts import Certainty, Claim, Finding, JobView, Member, Severity, Stage, Who
from allaboard.rules.engine.catalogue import RuleEntry
from allaboard.rules.engine.evaluate import make_finding
from allaboard.rules.engine.relations import explains_lost_peers, reports_stall

RESOLVED_AFTER_S = 5.0
"""How long a claim must not have been made, while the job moves, before its finding counts as resolved."""
UNMEASURED_S = 15.0
"""Time after the agent was not scheduled in which what is measured over a while may be unknown yet."""
RECURRENCE_S = 60.0
"""A claim that recurs within this time was not resolved, and is not announced again unless it stays."""
LONGER_PAUSE = 2.0
"""How many times as long a pause at the same place must last to be announced again."""

Subjects = frozenset[tuple[str, int, int]]
"""Host, pid, and the rank if there is no pid. (In containers processes of several hosts have the same
pid.)"""

FindingKey = tuple[str, Subjects]
"""Code of the rule, and whom the finding is about."""


class FindingStore:
    """The findings of a job by rule and by whom they are about, oldest first.

    A claim that only adds members to an earlier one of its rule replaces it, and is not announced again.

    A member that lost its peers for an unknown reason is not announced once the cause is known: members lose
    their peers when their framework's timeout ends the wait.

    An agent whose leader has gone, or has finished, sees its own members alone. It knows what the leader
    reported of them together with members that it does not see: that is not announced a second time if it
    cannot be resolved.
    """

    def __init__(self, utc: Callable[[float], str]) -> None:
        self._utc = utc
        self._findings: dict[FindingKey, Finding] = {}
        self._relations: dict[str, Relations] = {}
        """Code to the relations of the rules whose claims were made here."""
        self._claimed_at: dict[FindingKey, float] = {}
        """When a claim that may be resolved was last made (s)."""
        self._claimed_since: dict[FindingKey, float] = {}
        """Since when its state lasted (s)."""
        self._resolved_pauses: dict[FindingKey, tuple[str, float]] = {}
        """Summary of a stall that resolved itself, and how long it lasted (s)."""
        self._recurring_since: dict[FindingKey, float] = {}
        """Since when (s) a claim has recurred that was announced as resolved and has not been announced
        anew."""
        self._unmeasured_until = 0.0
        self._reported_by_leader: set[FindingKey] = set()

    def new_findings(
        self, now: float, claims: Iterable[tuple[RuleEntry, Claim]]
    ) -> Iterator[Finding]:
        """Yield a finding for each claim that was not made before."""
        for entry, claim in claims:
            subjects = _subjects(claim.who)
            key = entry.code, subjects
            self._relations[entry.code] = entry.rule.relations
            if self._is_usual_pause(now, key, claim):
                continue
            known_finding = self._known_finding(now, key, entry, claim)
            if known_finding is not None or (
                _has_unknown_cause(entry, claim) and self._is_cause_known()
            ):
                continue
            if not entry.rule.passes and self._is_announced_with_others(entry, subjects):
                continue
            finding = self._make_finding(now, entry, claim)
            smaller_key = self._key_of_part(entry.code, subjects)
            if smaller_key is not None:
                smaller = self._findings.pop(smaller_key)
                self._claimed_at.pop(smaller_key, None)
                self._recurring_since.pop(smaller_key, None)
                finding = msgspec.structs.replace(
                    finding, at=smaller.at, seconds_to_find=smaller.seconds_to_find
                )
            self._findings[key] = finding
            self._recurring_since.pop(key, None)
            if smaller_key is None:
                yield finding

    def _known_finding(
        self, now: float, key: FindingKey, entry: RuleEntry, claim: Claim
    ) -> Finding | None:
        """Return the finding that this claim repeats, and note that it was claimed; None if it is to be
        announced."""
        last_claimed_at = self._claimed_at.get(key)
        if entry.rule.passes:
            self._claimed_at[key] = now
            if claim.since is not None:
                self._claimed_since[key] = claim.since
        known_finding = self._findings.get(key)
        if known_finding is not None and known_finding.over is not None:
            if last_claimed_at is not None and now - last_claimed_at >= RECURRENCE_S:
                known_finding = None
            else:
                self._recurring_since[key] = now if claim.since is None else claim.since
                self._findings[key] = msgspec.structs.replace(known_finding, over=None)
        recurring_since = self._recurring_since.get(key)
        if recurring_since is not None and now - recurring_since >= self._min_recurrence_s(key):
            return None  # the last that was announced of it is that it was resolved
        return known_finding

    def _is_usual_pause(self, now: float, key: FindingKey, claim: Claim) -> bool:
        """Return True if members stand at a place where they stood before, and went on. A pause that comes
        with every epoch is announced again only when it lasts twice as long."""
        known_finding = self._findings.get(key)
        if known_finding is None or known_finding.over is None or claim.since is None:
            return False
        summary, duration = self._resolved_pauses.get(key, ("", 0.0))
        return summary == claim.summary and now - claim.since < LONGER_PAUSE * duration

    def _min_recurrence_s(self, key: FindingKey) -> float:
        """Return how long a resolved claim must recur before it is announced again (s)."""
        if key in self._resolved_pauses:
            return LONGER_PAUSE * self._resolved_pauses[key][1]
        return RECURRENCE_S

    def is_stall_known(self, who: Iterable[Who]) -> bool:
        """Return True if a finding that is not resolved says of one of these members why it stands still."""
        subjects = _subjects(tuple(who))
        return any(
            finding.over is None and reports_stall(code) and subjects & known_subjects
            for (code, known_subjects), finding in self._findings.items()
        )

    def hold_resolutions(self, now: float) -> None:
        """Begin all measurements anew: for a while a claim that is not made is not resolved for that."""
        self._unmeasured_until = now + UNMEASURED_S

    def resolved_findings(self, now: float, view: JobView) -> Iterator[Finding]:
        """Yield the findings whose state has passed.

        They have not been claimed for a while, in a job that moves, of members that all live. If all members
        ended well, none hung for good. A rule that measures a training is resolved only while there is one.
        """
        is_training = is_whole_job_training(view)
        is_done = view.ended and all(m.exit is not None and m.exit.code == 0 for m in view.members)
        if view.ending or (view.stalled and not is_done) or not self._claimed_at:
            return
        if now < self._unmeasured_until and not is_done:
            return
        living = [m.who for m in view.alive]
        alive = {_subject(w) for w in living}
        alive |= {(host, 0, w.rank) for w in living for host in ("", w.host)}
        for key, claimed_at in self._claimed_at.items():
            code, subjects = key
            finding = self._findings.get(key)
            if finding is None or finding.over is not None:
                continue
            relations = self._relations[code]
            if now - claimed_at < RESOLVED_AFTER_S and not (is_done and reports_stall(code)):
                continue
            if relations.measured and not is_training:
                continue  # nothing is measured any more: a member that was slow to the end has not recovered
            if relations.seen_while_waiting and any(
                _still_waits(m, subjects, claimed_at) for m in view.alive
            ):
                continue  # between two attempts to connect no connection is without an answer
            if is_done or subjects <= alive:
                finding = msgspec.structs.replace(finding, over=self._utc(claimed_at))
                self._findings[key] = finding
                if reports_stall(code) and key in self._claimed_since:
                    duration = claimed_at - self._claimed_since[key]
                    self._resolved_pauses[key] = finding.summary, duration
                if self._recurring_since.pop(key, None) is None:
                    yield finding  # else its resolution was announced last

    def _is_cause_known(self) -> bool:
        return any(
            explains_lost_peers(f.rule)
            and f.severity == Severity.ERROR
            and f.certainty != Certainty.UNKNOWN
            and f.over is None
            for f in self._findings.values()
        )

    def _key_of_part(self, code: str, subjects: Subjects) -> FindingKey | None:
        """Return the key of a finding of this rule on a part of these members; None if there is none."""
        return next((k for k in self._findings if k[0] == code and k[1] and k[1] < subjects), None)

    def _is_announced_with_others(self, entry: RuleEntry, subjects: Subjects) -> bool:
        """Return True if the leader, which sees more, named these members together with others; or if a rule
        that follows from this one did."""
        for (code, other_subjects), finding in self._findings.items():
            if not subjects <= other_subjects or not subjects or finding.over is not None:
                continue
            if code == entry.code and (code, other_subjects) in self._reported_by_leader:
                return True
            is_certain = finding.certainty is Certainty.CERTAIN
            if is_certain and code in entry.rule.relations.follows_from:
                return True
        return False

    def _make_finding(self, now: float, entry: RuleEntry, claim: Claim) -> Finding:
        since = claim.since
        return make_finding(
            entry,
            claim,
            at=self._utc(now),
            since=self._utc(since) if since is not None else None,
            seconds_to_find=round(max(0.0, now - since), 3) if since is not None else None,
        )

    def add_reported_finding(self, finding: Finding) -> None:
        """Remember a finding that the leader made or resolved."""
        key = finding.rule, _subjects(finding.who)
        self._reported_by_leader.add(key)
        if finding.over is not None:
            self._findings[key] = finding
        self._findings.setdefault(key, finding)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, oldest first."""
        return tuple(self._findings.values())


def _still_waits(member: Member, subjects: Subjects, claimed_at: float) -> bool:
    """Return True if this is one of the members, and is still where it was at ``claimed_at``: in the same
    operation, or before its first step."""
    if _subject(member.who) not in subjects or only_serves(member):
        return False
    if member.op is not None:
        return member.op.since <= claimed_at
    return not member.step and member.moved_at <= claimed_at


def _has_unknown_cause(entry: RuleEntry, claim: Claim) -> bool:
    return entry.stage is Stage.EXIT and claim.certainty is Certainty.UNKNOWN


def _subjects(members: Iterable[Who]) -> Subjects:
    return frozenset(_subject(who) for who in members)


def _subject(who: Who) -> tuple[str, int, int]:
    return who.host, who.pid, 0 if who.pid else who.rank
