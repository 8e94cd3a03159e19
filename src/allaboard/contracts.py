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
"""Workers of a drill whose fault is the same among any number of them: there are three if nobody asks for
another number."""


class Drill(msgspec.Struct, frozen=True, kw_only=True):
    """One fault, staged on a real framework. The file's name is the drill's.

    Attributes:
        script: the job that runs, a file of ``drills/jobs``.
        expects: the rule that must name the fault.
        workers: how many of the script are started; 0 where any number from ``fewest`` to MOST does.
        fewest: the fewest: who is wrong of two that differ, nobody can say.
        guilty: the rank that carries the fault.
        blames: the ranks that the finding must name, the guilty one where it is left out.
        inside: the script itself fails, told by ``--fault``: ``fault``, or the drill's name.
        outside: done to the guilty process (its pid) once it has trained some steps.
        trains: whose steps are counted for ``outside``, the guilty one where it is -1.
        heal: undoes ``outside``, whatever happened in between.
        arguments: further arguments of the script.
        options: further options of ``allaboard run``.
        command: the command before the script, where it is not plain Python; {python} stands for it.
        exit_codes: those that ``allaboard run`` may end with.
        restarts: how often all workers must have been started again.
        returns: how often a task alone must have been.
        ends: whether the run ends by itself; else it is ended once the fault is named.
        allowed: further rules that may speak too.
        needs: what the machine must have: "cgroup-memory", "cgroup-cpu".
        long: why the tests stage it in their long run only; "" where they always do.
        over: the fault passes, and the finding must be told to be over.
    """

    script: str
    expects: str
    workers: int = 0
    fewest: int = FEWEST
    guilty: int = 1
    blames: tuple[int, ...] = ()
    inside: bool = False
    fault: str = ""
    outside: Callable[[int], None] | None = None
    heal: Callable[[int], None] | None = None
    trains: int = -1
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    exit_codes: tuple[int, ...] = (1,)
    restarts: int = 0
    returns: int = 0
    ends: bool = True
    allowed: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    long: str = ""
    over: bool = False


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
