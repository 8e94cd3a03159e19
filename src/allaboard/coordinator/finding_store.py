"""Every finding is said once, with the time at which it was made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from allaboard.analysis.parameter_servers.task_roles import only_serves
from allaboard.analysis.resources.host_load import is_whole_job_training
from allaboard.contracts import Relations
from allaboard.facts import Certainty, Claim, Finding, JobView, Member, Severity, Stage, Who
from allaboard.rules.engine.catalogue import RuleEntry
from allaboard.rules.engine.evaluate import make_finding
from allaboard.rules.engine.relations import explains_lost_peers, reports_stall

SETTLED = 5.0
"""Seconds for which a claim must not have been made, while the job moves, before it is over."""
BLIND = 15.0
"""Seconds after the observer was not scheduled in which what is measured over a while may be unknown yet."""
AGAIN = 60.0
"""What comes again within so many seconds was not over, and is not said once more, unless it stays."""

LONGER = 2.0
"""How many times as long a pause at the same place must last to be told again."""

UNKNOWN = Certainty.UNKNOWN

People = frozenset[tuple[str, int, int]]
"""Host, pid, and the rank of who has no pid: in containers, processes of several hosts have one pid."""

Key = tuple[str, People]


class FindingStore:
    """The findings of a job by rule and by whom they are about, oldest first.

    A claim that only adds members to an earlier one of its rule takes that one's place, and is not
    said again. That some lost their peers for an unknown reason is not said once it was told what is the
    matter: they lose them when their framework's own timeout ends the wait. And an agent whose deciding host
    has gone, or has done its part, sees its own members alone, and knows what it was told of them, together
    with others of whom it sees nothing: that does not come a second time where it cannot pass.
    """

    def __init__(self, utc: Callable[[float], str]) -> None:
        self._utc = utc
        self._known: dict[Key, Finding] = {}
        self._relations: dict[str, Relations] = {}
        """What the rules declare whose claims were made here, by their codes."""
        self._claimed: dict[Key, float] = {}
        """When a claim that may pass was last made (s), by its key."""
        self._since: dict[Key, float] = {}
        """Since when that was so."""
        self._lasted: dict[Key, tuple[str, float]] = {}
        """What passed by itself, in its words, and for how many seconds it was so."""
        self._back: dict[Key, float] = {}
        """Since when (s) that is so again which was told to be over, and has not been told anew."""
        self._blind_until = 0.0
        self._elsewhere: set[Key] = set()
        """What other hosts' coordinators have made."""

    def new_findings(
        self, now: float, claims: Iterable[tuple[RuleEntry, Claim]]
    ) -> Iterator[Finding]:
        """Those of the claims that were not made before, as findings."""
        for entry, claim in claims:
            who = _people(claim.who)
            key = entry.code, who
            self._relations[entry.code] = entry.rule.relations
            if self._as_before(now, key, claim):
                continue
            before = self._claimed.get(key)
            if entry.rule.passes:
                self._claimed[key] = now
                if claim.since is not None:
                    self._since[key] = claim.since
            known = self._known.get(key)
            if known is not None and known.over is not None:
                if before is not None and now - before >= AGAIN:
                    known = None
                else:
                    self._back[key] = now if claim.since is None else claim.since
                    self._known[key] = msgspec.structs.replace(known, over=None)
            if key in self._back and now - self._back[key] >= self._patience(key):
                known = None  # the last that was said of it is that it is over
            if known is not None or (_unexplained(entry, claim) and self._cause_known()):
                continue
            if not entry.rule.passes and self._said_with_others(entry, who):
                continue
            finding = self._finding(now, entry, claim)
            grown = self._grown(entry.code, who)
            if grown is not None:
                earlier = self._known.pop(grown)
                self._claimed.pop(grown, None)
                self._back.pop(grown, None)
                finding = msgspec.structs.replace(
                    finding, at=earlier.at, seconds_to_find=earlier.seconds_to_find
                )
            self._known[key] = finding
            self._back.pop(key, None)
            if grown is None:
                yield finding

    def _as_before(self, now: float, key: Key, claim: Claim) -> bool:
        """Whether it stands where it stood before, and went on: what comes with every epoch is told again
        only when it lasts twice as long."""
        known = self._known.get(key)
        if known is None or known.over is None or claim.since is None:
            return False
        words, lasted = self._lasted.get(key, ("", 0.0))
        return words == claim.summary and now - claim.since < LONGER * lasted

    def _patience(self, key: Key) -> float:
        """For how many seconds it must be so again before that is told."""
        return LONGER * self._lasted[key][1] if key in self._lasted else AGAIN

    def hold_resolutions(self, now: float) -> None:
        """What is measured begins anew: a claim that is not made now is not over for that."""
        self._blind_until = now + BLIND

    def resolved_findings(self, now: float, view: JobView) -> Iterator[Finding]:
        """Findings whose state has passed: not claimed any more for a while, in a job that moves, of
        members that all live. Where all have ended well, nobody hung for good. What is measured of a
        training is over only while there is one."""
        training = is_whole_job_training(view)
        done = view.ended and all(m.exit is not None and m.exit.code == 0 for m in view.members)
        if view.ending or (view.stalled and not done) or not self._claimed:
            return
        if now < self._blind_until and not done:
            return
        living = [m.who for m in view.alive]
        alive = {_called(w) for w in living}
        alive |= {(host, 0, w.rank) for w in living for host in ("", w.host)}
        for key, at in self._claimed.items():
            finding = self._known.get(key)
            if finding is None or finding.over is not None:
                continue
            relations = self._relations[key[0]]
            if now - at < SETTLED and not (done and reports_stall(key[0])):
                continue
            if relations.measured and not training:
                continue  # nothing is measured any more: who was slow to the end has not recovered
            if relations.seen_while_waiting and any(_inside(m, key[1], at) for m in view.alive):
                continue  # between two attempts to connect there is nothing that is not answered
            if done or key[1] <= alive:
                finding = self._known[key] = msgspec.structs.replace(finding, over=self._utc(at))
                if reports_stall(key[0]) and key in self._since:
                    self._lasted[key] = finding.summary, at - self._since[key]
                if self._back.pop(key, None) is None:
                    yield finding  # else it is what was said last

    def _cause_known(self) -> bool:
        return any(
            explains_lost_peers(f.rule)
            and f.severity == Severity.ERROR
            and f.certainty != UNKNOWN
            and f.over is None
            for f in self._known.values()
        )

    def _grown(self, code: str, who: People) -> Key | None:
        return next((k for k in self._known if k[0] == code and k[1] and k[1] < who), None)

    def _said_with_others(self, entry: RuleEntry, who: People) -> bool:
        """Whether these were named before, with others, by a host that sees more; or by the rule that told
        their end."""
        for (rule, people), known in self._known.items():
            if not who <= people or not who or known.over is not None:
                continue
            if rule == entry.code and (rule, people) in self._elsewhere:
                return True
            certain = known.certainty is Certainty.CERTAIN
            if certain and rule in entry.rule.relations.follows_from:
                return True
        return False

    def _finding(self, now: float, entry: RuleEntry, claim: Claim) -> Finding:
        since = claim.since
        return make_finding(
            entry,
            claim,
            at=self._utc(now),
            since=self._utc(since) if since is not None else None,
            seconds_to_find=round(max(0.0, now - since), 3) if since is not None else None,
        )

    def add_reported_finding(self, finding: Finding) -> None:
        """A finding that another host's coordinator made."""
        who = _people(finding.who)
        self._elsewhere.add((finding.rule, who))
        if finding.over is not None:
            self._known[finding.rule, who] = finding
        self._known.setdefault((finding.rule, who), finding)

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(self._known.values())


def _inside(member: Member, people: People, at: float) -> bool:
    """Whether one of these is where it was at this time: in that operation, or before its first step."""
    if _called(member.who) not in people or only_serves(member):
        return False
    if member.op is not None:
        return member.op.since <= at
    return not member.step and member.moved_at <= at


def _unexplained(entry: RuleEntry, claim: Claim) -> bool:
    return entry.rule.stage is Stage.EXIT and claim.certainty is UNKNOWN


def _people(who: Iterable[Who]) -> People:
    return frozenset(_called(w) for w in who)


def _called(who: Who) -> tuple[str, int, int]:
    return who.host, who.pid, 0 if who.pid else who.rank
