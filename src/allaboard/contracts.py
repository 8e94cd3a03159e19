"""What a plug-in of each room must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from allaboard.facts import (
    Claim,
    ClusterSpec,
    Exhibit,
    Material,
    PartialSpec,
    Stage,
    Testimony,
)

Facts = TypeVar("Facts")


class Rule(msgspec.Struct, Generic[Facts], frozen=True, kw_only=True):
    """One thing that allaboard can say.

    A rule lives in ``rules/<code>_<name>.py``, whose docstring is its published page, and is the
    ``RULE`` at the end of that file.

    Attributes:
        stage: when in a job's life it looks.
        reads: the type of facts that ``check`` takes; it runs only on those.
        check: facts to claims; pure: no clock, no file, no network.
        needs: fields of Member: while no member of a job has one of them told (any will do), the rule
            says nothing, and is not asked. It saves a look at thousands of members each.
        fires_on: named facts, each with the summary of the first claim they must give.
        silent_on: named facts that look alike and must give no claim (the near misses).
        since: the first version that has it.
        drill: the name of the drill that stages it for real, one or more.
        unstaged: why no drill can stage it, where none can.
        passes: it tells of a state that may pass; when it has, that is told too.
    """

    stage: Stage
    reads: type[Facts]
    check: Callable[[Facts], Iterator[Claim]]
    fires_on: Mapping[str, tuple[Facts, str]]
    silent_on: Mapping[str, Facts]
    since: str
    drill: tuple[str, ...] = ()
    unstaged: str = ""
    passes: bool = False
    needs: tuple[str, ...] = ()


FEWEST, USUAL, MOST = 2, 3, 8
"""Workers of a drill whose fault is the same among any number of them: at least, by default, at most."""


class Drill(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, staged on a real framework on one host. Its key in the family's table is its name."""

    title: str
    """One sentence: what is wrong in the job."""
    script: str
    """The job that runs, a file of ``drills/jobs``."""
    expects: str
    """The rule that must name the fault."""
    workers: int = 0
    """How many workers are started; 0 if any number from ``fewest`` to MOST will do."""
    fewest: int = FEWEST
    """The smallest number of workers: of two that differ, nobody can say who is wrong."""
    guilty: int = 1
    """The rank that carries the fault."""
    blames: tuple[int, ...] = ()
    """Ranks that the finding must name; empty: the guilty one."""
    inside: bool = False
    """True if the script stages the fault itself: it gets ``--fault`` with ``fault``, or the drill's name."""
    fault: str = ""
    """Value of ``--fault`` for a fault inside the script; "" for the drill's name."""
    outside: Callable[[int], None] | None = None
    """Called with the guilty process's pid once it has trained some steps."""
    heal: Callable[[int], None] | None = None
    """Called with that pid at the end, to undo ``outside``, whatever happened in between."""
    trains: int = -1
    """Rank whose steps are counted for ``outside``; -1 for the guilty one."""
    arguments: tuple[str, ...] = ()
    """More arguments for the script."""
    options: tuple[str, ...] = ()
    """More options for ``allaboard run``."""
    command: tuple[str, ...] = ()
    """Command that starts the script if plain Python does not; {python} stands for the interpreter."""
    exit_codes: tuple[int, ...] = (1,)
    """Exit codes that ``allaboard run`` may return."""
    restarts: int = 0
    """How many times all workers must have been restarted."""
    returns: int = 0
    """How many times a task must have been restarted alone."""
    ends: bool = True
    """True if the run ends by itself; else it is ended once the fault is named."""
    allowed: tuple[str, ...] = ()
    """Other rules that may report something too."""
    needs: tuple[str, ...] = ()
    """What the machine must have: "cgroup-memory", "cgroup-cpu"."""
    long: str = ""
    """Why only the long test run stages it; "" if every run does."""
    over: bool = False
    """True if the fault passes, and the finding must then be reported as resolved."""


class Resolver(msgspec.Struct, frozen=True, kw_only=True):
    """One source of configuration, in ``resolve/<source>.py``, whose file name is its name.

    Attributes:
        resolve: what it finds in the material, nothing where the source is absent; pure, and
            never raises on bad input: what cannot be read becomes a Problem of the PartialSpec.
        write: a spec as this source's own text (`allaboard spec --as`); None where it has none.
            Raises ValueError, with the sentence to print, where the spec lacks what it needs.
    """

    resolve: Callable[[Material], Iterable[PartialSpec]]
    write: Callable[[ClusterSpec], str] | None = None


class Witness(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of evidence that others leave behind, in ``witnesses/<kind>.py``.

    Attributes:
        hears: what it finds in an exhibit, None where the exhibit is not of its kind; pure, and
            never raises on bad input: what cannot be read becomes a note.
    """

    hears: Callable[[Exhibit], Testimony | None]


class Clock(Protocol):
    """Where the shells take the time from."""

    def monotonic(self) -> float:
        """Seconds of CLOCK_MONOTONIC."""
        ...

    def utc(self, monotonic: float) -> str:
        """The wall time of a monotonic time, ISO 8601 with milliseconds, ending in Z."""
        ...
