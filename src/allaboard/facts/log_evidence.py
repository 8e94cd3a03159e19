"""Evidence that others left behind about a job, and what was read in it: logs, dumps, traces."""

from __future__ import annotations

import msgspec

from allaboard.facts.finding import Certainty, Place, Severity, Who
from allaboard.facts.flight_records import Recorded
from allaboard.facts.instruments.collective_times import RankTimes
from allaboard.facts.instruments.hardware import Hardware
from allaboard.facts.instruments.nccl_state import NcclReport
from allaboard.facts.member import Exit, Raised
from allaboard.facts.stack import Frame, Stack


class Exhibit(msgspec.Struct, frozen=True, kw_only=True):
    """One file that was left behind, or what one process wrote into it."""

    name: str
    """The file's name, as given."""
    data: bytes
    """Its content, bounded by who read it."""
    rank: int = -1
    """Rank that its name, its folder or the prefix of its lines tells; -1 if none does."""
    cut: int = 0
    """Bytes that were left out before the last part; 0 for a whole file."""
    host: str = ""
    """Host that is told likewise; "" for none."""
    pid: int = 0
    """Pid that is told likewise; 0 for none."""
    numbers: tuple[int, ...] = ()
    """Numbers of its lines in the file, from 1, if it is a part of one."""
    labelled: bool = False
    """True if a launcher put a prefix before every line of its process."""
    local: int = -1
    """Number of the process on its node, if that alone is told; else -1."""
    trained_after: bool = False
    """True if other processes write of steps or a loss into the same file after its last line."""

    @property
    def text(self) -> str:
        """The content as text."""
        return self.data.decode("utf-8", "replace")

    def place_of_line(self, lines_before: int) -> Place:
        """Return the place of the line that has so many lines before it here."""
        if self.cut:
            return Place(file=self.name, line=0)  # those of the middle were not counted
        whole = lines_before >= len(self.numbers)
        return Place(file=self.name, line=lines_before + 1 if whole else self.numbers[lines_before])


class Speaker(msgspec.Struct, frozen=True):
    """One line that says a known message."""

    rank: int
    """Rank that wrote it; -1 if unknown."""
    line: str
    """The line."""
    place: Place
    """Its place."""
    pid: int = 0
    """Pid of the process that wrote it, if a prefix tells it; else 0."""


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """A known message, with all who wrote it."""

    rule: str
    """The rule that it means."""
    says: str
    """Its sentence, filled in."""
    speakers: tuple[Speaker, ...]
    """The lines that say it."""
    fix: str
    """What to do."""
    about: tuple[Who, ...] = ()
    """The members that the message itself names."""
    silent: tuple[int, ...] = ()
    """Ranks whose logs are here and that did not write it, if that tells something."""
    awaits: bool = False
    """True if the silence of the others tells something."""
    size: int = 0
    """How many members it speaks of; 0 if of none."""
    proves_not: str = ""
    """What must not be read into it."""
    severity: Severity = Severity.ERROR
    """How much it matters."""
    certainty: Certainty = Certainty.LIKELY
    """How well it carries the claim."""
    explains: tuple[str, ...] = ()
    """Rules whose messages follow from it; they are dropped."""
    only_explains: bool = False
    """True if it is harmless alone: it counts only beside a message of a rule that it ``explains``."""
    ended_wait: bool = False
    """True if it reports a limit that ends any job: what the job waited for then is the cause."""
    bare_end: bool = False
    """True if it reports only that a process ended: what that process wrote itself says why."""
    pid: int = 0
    """Pid of the process whose end it reports; 0 if it tells none."""


class LoggedReason(msgspec.Struct, frozen=True, kw_only=True):
    """An error that a log reports shortly before its end."""

    says: str
    """What the line says."""
    speaker: Speaker
    """The line."""
    fix: str
    """What to do about it."""
    about: tuple[Who, ...] = ()
    """The members that it names."""
    is_consequence: bool = False
    """True if its words are those of a failure that is passed on."""
    is_stated: bool = False
    """True if the log itself calls it the reason."""


class JobStart(msgspec.Struct, frozen=True, kw_only=True):
    """What a launcher or a member writes of the job that it starts or joins."""

    place: Place
    """Where it stands."""
    line: str
    """The line."""
    launcher: str
    """Who writes it."""
    number: int = -1
    """Which member or host it is, from 0; -1 if not told."""
    size: int = 0
    """How many there are to be; 0 if not told."""
    job: str = ""
    """What else is the same for all members of one job: a command, an address."""
    counts_nodes: bool = False
    """True if it counts hosts, and not processes."""
    is_complete: bool = False
    """True if the log shows that all came, or that the program went on."""
    tells_completion: bool = False
    """True if it would say that all have come."""
    ends_log: bool = False
    """True if nothing but other starts and words of waiting follow it in its log."""
    members: tuple[str, ...] = ()
    """Addresses of all members by number, if it tells them."""
    names: tuple[str, ...] = ()
    """Names of all members by number, where they are not ``worker NUMBER``."""


class Glimpse(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence of one process in one exhibit."""

    origin: Place
    """Where it stands."""
    rank: int = -1
    """Its rank; -1 if not told."""
    pid: int = 0
    """Its pid; 0 if not told."""
    host: str = ""
    """Its host; "" if not told."""
    stack: Stack | None = None
    """Its stack; None if there is none."""
    raised: Raised | None = None
    """The exception at its top; None for none."""
    exit: Exit | None = None
    """How it ended; None if that is not told."""
    doubt: str = ""
    """Why what it ``raised`` may not have ended it; "" if that is proven."""
    guess: int = -1
    """Rank that its arguments, its variables or its number on its node make likely; -1 for none."""
    command: str = ""
    """Its command line."""
    parent: int = 0
    """Pid of its parent; 0 if not told."""
    task: str = ""
    """Its job and index if the job itself names it so, as "ps 1"; else ""."""
    role: str = ""
    """What it is if its code shows that it is no rank, as a DataLoader's worker; else ""."""


class Overdue(msgspec.Struct, frozen=True, kw_only=True):
    """The words of NCCL's watchdog on one rank about one group."""

    rank: int
    """The rank."""
    group: str
    """The process group."""
    number: int = 0
    """Number of the collective that was not over in time; 0 if none was."""
    op: str = ""
    """Its operation."""
    elements: tuple[int, int] = (0, 0)
    """How many elements went in and out."""
    enqueued: int = -1
    """Last number that was enqueued; -1 if not known."""
    completed: int = -1
    """Last number that was completed; -1 if not known."""
    member: int = -1
    """Rank within the group; -1 if not told."""
    late_s: float = 0.0
    """Seconds after the timeout at which the watchdog reported it: it looks about every second."""
    where: Frame | None = None
    """The user's line that called it, if a recorder kept it."""
    line: str = ""
    """The line as it was written."""
    place: Place
    """Its place."""


class Watchdogs(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The words of all ranks' watchdogs."""

    reports: tuple[Overdue, ...]
    """One entry for each rank and group."""
    ranks: tuple[int, ...] = ()
    """All ranks of which anything is here."""


class Dumps(msgspec.Struct, frozen=True, kw_only=True):
    """One sample of the stacks of several processes."""

    stacks: dict[int, Stack]
    """Stack by rank; a process of unknown rank has a number that is none."""
    unnamed: dict[int, Who] = {}
    """Processes of unknown rank, by that number."""


class Testimony(msgspec.Struct, frozen=True, kw_only=True):
    """All that one exhibit gives."""

    heard: tuple[Heard, ...] = ()
    """Known messages."""
    glimpses: tuple[Glimpse, ...] = ()
    """Processes that it shows."""
    recorded: tuple[Recorded, ...] = ()
    """Collectives of a recorder."""
    groups: dict[str, tuple[int, ...]] = {}
    """Ranks of each group."""
    overdue: tuple[Overdue, ...] = ()
    """Words of NCCL's watchdogs."""
    starts: tuple[JobStart, ...] = ()
    """Starts of the job that launchers and members report."""
    hardware: Hardware = Hardware()
    """Readings of GPUs and adapters."""
    nccl: tuple[NcclReport, ...] = ()
    """Answers of NCCL's own service."""
    timed: tuple[RankTimes, ...] = ()
    """Times of collectives."""
    reasons: tuple[LoggedReason, ...] = ()
    """Errors that it reports shortly before its end, oldest first."""
    notes: tuple[str, ...] = ()
    """What of it could not be read."""
