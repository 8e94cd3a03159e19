"""Which hosts of the job were interrupted: what is known here, and what all others must be told."""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.analysis.member_names import name_first_members
from allaboard.facts import ASKING, Interruption, Member
from allaboard.protocol.commands import ReportInterruption
from allaboard.protocol.events import AgentInterrupted


class Interruptions:
    """The interruptions of other agents than our own, the first one first."""

    def __init__(self) -> None:
        self._interruptions: dict[tuple[str, str], Interruption] = {}
        """Host and its members' names to the interruption."""
        self._interrupted_at: dict[int, float] = {}
        """Agent to the time of its first interruption."""
        self._unreported: list[ReportInterruption] = []

    def add_interruption(
        self, now: float, event: AgentInterrupted, members: Iterable[Member], host: str
    ) -> None:
        """Remember that the agent of ``host``, which has these ``members``, was asked to end the job."""
        if event.signal not in ASKING or event.agent in self._interrupted_at:
            return
        self._interrupted_at[event.agent] = event.interrupted_at
        member_names = _member_names(members)
        self._unreported.append(
            ReportInterruption(host=host, signal=event.signal, members=member_names)
        )
        if event.agent:
            self.add_reported_interruption(
                Interruption(host=host, signal=event.signal, interrupted_at=now, who=member_names)
            )

    def add_reported_interruption(self, interruption: Interruption) -> None:
        """Remember an interruption that the leader reported; a signal that asks for no end is ignored."""
        if interruption.signal in ASKING:
            self._interruptions.setdefault((interruption.host, interruption.who), interruption)

    def take_reports(self) -> list[ReportInterruption]:
        """Return what the other hosts must be told and have not been told yet."""
        reports, self._unreported = self._unreported, []
        return reports

    def interrupted_at(self, agent: int) -> float | None:
        """Return when another agent was asked to end the job (s); None if it was not."""
        return self._interrupted_at.get(agent) if agent else None

    def since_opening(self, opened_at: float | None) -> tuple[Interruption, ...]:
        """Return the interruptions since the gate was opened, all of them while it is closed: once it is
        open, others have come in the place of the hosts that were interrupted before."""
        interruptions = self._interruptions.values()
        return tuple(
            [i for i in interruptions if opened_at is None or i.interrupted_at >= opened_at]
        )


def _member_names(members: Iterable[Member]) -> str:
    return name_first_members([m for m in members if not m.has_no_part])
