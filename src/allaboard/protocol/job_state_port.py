"""The two doors of the job state: ``handle`` takes events and returns commands, ``status`` is read only.

The shells (the agent's loop, the membership of several hosts) are handed a `JobStatePort` and nothing else,
so that the type checker refuses a shell that writes the state or reaches inside it. What a shell learned is
an event; what it needs to know is a property of the status.
"""

from __future__ import annotations

from typing import Protocol

from allaboard.facts import Exit, Finding, Interruption, JobView, Outcome, TaskReturn
from allaboard.protocol.commands import Command, EndJob
from allaboard.protocol.events import Event


class JobStatusPort(Protocol):
    """The read-only view of a job. Times are CLOCK_MONOTONIC seconds."""

    @property
    def opened_at(self) -> float | None:
        """Time at which the gate was opened for the first member; None before that."""

    @property
    def progress_at(self) -> float:
        """Time of the last event that counts as progress."""

    @property
    def ending(self) -> EndJob | None:
        """Why and how the job is being ended, here or by the leader; None if it is not."""

    @property
    def interrupted_by(self) -> int:
        """Signal by which this agent was asked to end the job; 0 if it was not."""

    @property
    def leader_decides(self) -> bool:
        """True if the coordinator of another host decides for this one."""

    @property
    def watches_stall(self) -> bool:
        """True while a part of the job stands still and needs more stack samples soon."""

    @property
    def early_open_reason(self) -> str:
        """Why the gate opens although the roll call is not complete; "" if it does not."""

    @property
    def spans_agents(self) -> bool:
        """True if other agents may have started ranks of this job."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings of this round, oldest first, those that the leader reported among them."""

    @property
    def task_returns(self) -> tuple[TaskReturn, ...]:
        """The tasks that were restarted alone in this round."""

    @property
    def interruption_behind_end(self) -> Interruption | None:
        """The interruption of another host that made this job fall; None if a member failed by itself."""

    @property
    def outcome(self) -> tuple[Outcome, str]:
        """The outcome of the job and its reason, once no process of it is left."""

    def view(self, now: float) -> JobView:
        """Return the frozen picture of the job that rules and faces read."""

    def recent_view(self, now: float) -> JobView:
        """Return a picture for display only: that of the last evaluation if there are many members."""

    def exit_of(self, worker: int) -> Exit | None:
        """Return how this worker of this host exited; None if it has not, or if allaboard ended it."""


class JobStatePort(Protocol):
    """The state of one job, as the shells see it."""

    @property
    def status(self) -> JobStatusPort:
        """The read-only view of the job, always as it is now."""

    def handle(self, now: float, *events: Event) -> list[Command]:
        """Take in what happened until ``now`` and return what to do.

        While the leader decides nothing is returned: the leader's coordinator sees the same events.
        """
