"""Which hosts of the job were interrupted: what is known of it here, and what all others are to be told."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.analysis.member_names import first_names
from allaboard.facts import ASKING, Interruption, Member
from allaboard.protocol.commands import ReportInterruption
from allaboard.protocol.events import AgentInterrupted


class Interruptions:
    """Of other agents than our own, the first one first."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Interruption] = {}
        self._asked_at: dict[int, float] = {}
        self._due: list[ReportInterruption] = []

    def add_interruption(
        self, now: float, event: AgentInterrupted, there: Iterable[Member], host: str
    ) -> None:
        """An agent of ``host`` was interrupted, whose members these are: all are to be told."""
        if event.signal not in ASKING or event.agent in self._asked_at:
            return
        self._asked_at[event.agent] = event.at
        report = ReportInterruption(host=host, signal=event.signal, who=_called(there))
        self._due.append(report)
        if event.agent:
            self.add_reported_interruption(
                Interruption(host=report.host, signal=report.signal, at=now, who=report.who)
            )

    def add_reported_interruption(self, interruption: Interruption) -> None:
        """Remember an interruption that the leader reported; a signal that asks for no end is ignored."""
        if interruption.signal in ASKING:
            self._known.setdefault((interruption.host, interruption.who), interruption)

    def take_reports(self) -> list[ReportInterruption]:
        """What was not said yet."""
        due, self._due = self._due, []
        return due

    def interrupted_at(self, agent: int) -> float | None:
        """When another agent was asked for the end (s); None where it was not."""
        return self._asked_at.get(agent) if agent else None

    def since_opening(self, rolled_at: float | None) -> tuple[Interruption, ...]:
        """Those that matter: once all were aboard, others had come in the places of who was not."""
        every = self._known.values()
        return tuple([k for k in every if rolled_at is None or k.at >= rolled_at])


def _called(members: Iterable[Member]) -> str:
    there = [m for m in members if not m.launcher and not m.candidate]
    return first_names(there)
