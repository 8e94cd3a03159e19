"""What others left behind about a job, and what was heard in it: logs, dumps, traces."""

from __future__ import annotations

import msgspec

from allaboard.facts.finding import Certainty, Place, Severity, Who
from allaboard.facts.flight_records import Recorded
from allaboard.facts.member import Exit, Raised
from allaboard.facts.stack import Frame, Stack


class Exhibit(msgspec.Struct, frozen=True, kw_only=True):
    """One file, or what one process wrote into it: its ``name`` as given, its ``data`` (bounded by who read
    it), the ``rank`` that its name, its folder or the prefix of its lines tells, -1 where none does;
    ``host`` and ``pid`` likewise; ``local`` its number on its node, where
    that alone is told. ``cut`` is how many bytes were left out before
    the last part, 0 for a whole file. ``numbers`` are those of its lines in the file, from 1, where it is
    a part of one. ``labelled``: a launcher put the prefix before every line of its process."""

    name: str
    data: bytes
    rank: int = -1
    cut: int = 0
    host: str = ""
    pid: int = 0
    numbers: tuple[int, ...] = ()
    labelled: bool = False
    local: int = -1

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    def place(self, before: int) -> Place:
        """The place of the line that has so many lines before it here."""
        if self.cut:
            return Place(file=self.name, line=0)  # those of the middle were not counted
        whole = before >= len(self.numbers)
        return Place(file=self.name, line=before + 1 if whole else self.numbers[before])


class Speaker(msgspec.Struct, frozen=True):
    """One line that was heard: ``rank`` of who wrote it (-1 unknown), the line, and its place."""

    rank: int
    line: str
    place: Place


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """A known message, as all who wrote it together said it.

    ``rule`` is what it means; ``says`` the sentence, filled in; ``about`` those that the message itself
    names; ``silent`` the ranks whose logs are here and that did not write it, where that tells
    something (``awaits``); ``size`` how many members it speaks of, 0 where of none; ``proves_not`` what
    must not be read into it.
    """

    rule: str
    says: str
    speakers: tuple[Speaker, ...]
    fix: str
    about: tuple[Who, ...] = ()
    silent: tuple[int, ...] = ()
    awaits: bool = False
    size: int = 0
    proves_not: str = ""
    severity: Severity = Severity.ERROR
    certainty: Certainty = Certainty.LIKELY


class Glimpse(msgspec.Struct, frozen=True, kw_only=True):
    """What one exhibit shows of one process. ``doubt``: why what it ``raised`` may not have ended it, ""
    where that is proven. ``guess``: the rank that its arguments, its variables or its number on its node
    make likely, -1 for none; ``command`` is its command line, ``parent`` the pid of who started it; ``role``
    what it is where its code shows that it is no rank, as a DataLoader's worker."""

    origin: Place
    rank: int = -1
    pid: int = 0
    host: str = ""
    stack: Stack | None = None
    raised: Raised | None = None
    exit: Exit | None = None
    doubt: str = ""
    guess: int = -1
    command: str = ""
    parent: int = 0
    role: str = ""


class Overdue(msgspec.Struct, frozen=True, kw_only=True):
    """What the watchdog of NCCL's process group wrote on one rank about one ``group``.

    ``number`` is that of the collective that was not over in time there, 0 where none was, with its ``op``
    and how many ``elements`` went in and out; ``enqueued`` and ``completed`` are the last numbers of which
    that is known, -1 where none is. ``member``: the rank within the group, -1 where it is not told.
    ``where``: the user's line that called it, where a recorder kept it. ``line`` as it was written, at
    ``place``.
    """

    rank: int
    group: str
    number: int = 0
    op: str = ""
    elements: tuple[int, int] = (0, 0)
    enqueued: int = -1
    completed: int = -1
    member: int = -1
    where: Frame | None = None
    line: str = ""
    place: Place


class Watchdogs(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The words of all ranks' watchdogs, one entry of each rank and group; ``known`` are all ranks of which
    anything is here."""

    words: tuple[Overdue, ...]
    known: tuple[int, ...] = ()


class Dumps(msgspec.Struct, frozen=True, kw_only=True):
    """One look at the stacks of several processes, by rank. Those of which no rank is known have a number
    that is none, and are in ``unnamed`` by it."""

    stacks: dict[int, Stack]
    unnamed: dict[int, Who] = {}


class Testimony(msgspec.Struct, frozen=True, kw_only=True):
    """What one exhibit gives; ``notes`` tell what of it could not be read."""

    heard: tuple[Heard, ...] = ()
    glimpses: tuple[Glimpse, ...] = ()
    recorded: tuple[Recorded, ...] = ()
    groups: dict[str, tuple[int, ...]] = {}
    overdue: tuple[Overdue, ...] = ()
    notes: tuple[str, ...] = ()
