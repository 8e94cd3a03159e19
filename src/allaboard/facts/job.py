"""The job-wide view that the startup, runtime and exit rules read."""

from __future__ import annotations

from operator import attrgetter

import msgspec

from allaboard.facts.bounds import Pid
from allaboard.facts.finding import Who
from allaboard.facts.interruption import Interruption
from allaboard.facts.leader_loss import LeaderLoss
from allaboard.facts.link import Call, Holder, Knock, Link, Usual
from allaboard.facts.member import Member
from allaboard.facts.memo import cached_per_view
from allaboard.facts.rollback import Setback
from allaboard.facts.step_spread import StepSpread
from allaboard.facts.usage import Gpu, Use


class LockWait(msgspec.Struct, frozen=True):
    """One process that waits for a file lock, as /proc/locks shows it."""

    waiter: Pid
    """Its pid; in a JobView the key by which events call the member."""
    holders: tuple[Pid, ...]
    """Pids on its host that hold the lock."""
    path: str
    """The file."""
    polls: bool = False
    """True if the kernel does not know of the wait: the holders have locked a file that this process may be
    asking for again and again."""
    has_open: bool = False
    """True if a process that may be asking has that file open."""


class WorldWait(msgspec.Struct, frozen=True, kw_only=True):
    """One process that waits to read what a process of another world has not sent."""

    waiter: Who
    """The process that waits."""
    waiter_key: int
    """The key by which events call it."""
    waiter_world: str
    """Its world, by the name that a person would give it."""
    waiter_place: str = ""
    """The line of its own code where it waits; "" if there is none."""
    holder: Who
    """The process that has the other end."""
    holder_key: int
    """The key by which events call that."""
    holder_world: str
    """The world of that process."""
    through: str
    """What both ends are of, for a person."""
    is_store: bool = False
    """True if the holder serves a store of keys there: any of its clients may be the one to set the key."""


class JobView(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """All facts about a job at one time. Times are in seconds of CLOCK_MONOTONIC."""

    now: float
    """The time of this view."""
    launched: int
    """Workers that we started; 0 if another launcher starts them."""
    members: tuple[Member, ...]
    """The processes of the job."""
    launched_at: float = 0.0
    """When the workers were started."""
    timeout: float = 60.0
    """Bound of the wait for a member that was never heard of (s)."""
    timeout_hard: float | None = None
    """Bound of the wait for a member that is alive and does not come (s); None for no bound."""
    time_limit_at: float | None = None
    """When the batch system ends this job because its time is up; None if that is not known."""
    interrupted_at: float | None = None
    """When this host was asked by a signal to end the job; None if it was not."""
    warned_at: float | None = None
    """When this host got the first SIGUSR1 or SIGUSR2 and passed it on; None if it got none."""
    warned_by: int = 0
    """Number of that signal; 0 for none."""
    rolled_at: float | None = None
    """When the roll call was complete; None if it is not."""
    progress_at: float = 0.0
    """When any member last did anything new."""
    median_step: float | None = None
    """Median duration of a step (s); None if not known."""
    step_spread: StepSpread | None = None
    """How long the steps of the whole run took so far; None before there are some."""
    stall_after: float = 5.0
    """Silence (s) after which the job counts as standing still, from its own median step."""
    hang_limit: float | None = None
    """Silence (s) after which the job is ended, whatever the cause; None if it is not ended for that."""
    lock_waits: tuple[LockWait, ...] = ()
    """Processes that wait for file locks."""
    ending: bool = False
    """True if allaboard is ending the job."""
    ending_since: float | None = None
    """Since when; None if that is not known."""
    ended: bool = False
    """True if all members have ended."""
    joined: bool = False
    """True if this host takes part in a job that somebody else starts on several hosts."""
    leads: bool = False
    """True if all meet here, so that this view shows every host's members."""
    place: str = ""
    """The meeting place as the user named it; "" if the user did not."""
    outside_step: str = ""
    """Evidence that this host's command runs in a Slurm job of several tasks, but in none of its steps, so
    that nothing starts the others; "" otherwise."""
    step_command: str = ""
    """This host's command as srun would start it in every task; "" unless ``outside_step`` is set."""
    call: Call | None = None
    """How our attempts to reach the meeting place stand; None if this host leads."""
    leader_loss: LeaderLoss | None = None
    """The loss of the agent that led the job; None if it leads still, or has left in order."""
    links: tuple[Link, ...] = ()
    """Which host reached which; () if they are thousands and all work well, which ``usual`` tells."""
    usual: Usual | None = None
    """All links together, if they are not listed."""
    knocks: tuple[Knock, ...] = ()
    """Connections from processes that are no members."""
    holder: Holder | None = None
    """The process that has the port which is needed here; None for none."""
    clocks: dict[str, float] = {}
    """How far each host's wall clock is ahead of ours (s)."""
    world_waits: tuple[WorldWait, ...] = ()
    """Waits for a member by a process of another world of ranks, and the other way round."""
    uses: tuple[Use, ...] = ()
    """What processes and hosts use of what is limited, and how that went in the last minute."""
    gpus: tuple[Gpu, ...] = ()
    """The GPUs of all hosts; () where there are none, or they are not measured."""
    setbacks: tuple[Setback, ...] = ()
    """The times that the training went back to an earlier step."""
    comes_back: str = ""
    """From what the values of a lost server come back when it is started again here ("checkpoint",
    "snapshot"); "" if nothing is started again."""
    interruptions: tuple[Interruption, ...] = ()
    """The other hosts that were interrupted since all were aboard."""

    @property
    @cached_per_view
    def alive(self) -> tuple[Member, ...]:
        """The members that live."""
        return tuple(m for m in self.members if m.alive)

    def any_member_has(self, field: str) -> bool:
        """Return True if any member has this field of Member filled, so that it is not empty, 0 or None."""
        answers = self._told
        if field not in answers:
            answers[field] = any(map(attrgetter(field), self.members))
        return answers[field]

    @property
    @cached_per_view
    def _told(self) -> dict[str, bool]:
        return {}

    @property
    def stalled(self) -> bool:
        """True if the job as a whole has stood still for longer than its own rhythm explains."""
        return bool(self.alive) and self.now - self.progress_at >= self.stall_after
