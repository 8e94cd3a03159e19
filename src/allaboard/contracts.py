"""What a plug-in of each room must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from allaboard.facts import Claim, ClusterSpec, Material, PartialSpec, Stage

Facts = TypeVar("Facts")


@dataclass(frozen=True, kw_only=True)
class Rule(Generic[Facts]):
    """One thing that allaboard can say.

    A rule lives in ``rules/<code>_<name>.py``, whose docstring is its published page, and is the
    ``RULE`` at the end of that file.

    Attributes:
        stage: when in a job's life it looks.
        reads: the type of facts that ``check`` takes; it runs only on those.
        check: facts to claims; pure: no clock, no file, no network.
        fires_on: named facts, each with the summary of the first claim they must give.
        silent_on: named facts that look alike and must give no claim (the near misses).
        since: the first version that has it.
        drill: the name of the drill that stages it for real, one or more.
        unstaged: why no drill can stage it, where none can.
    """

    stage: Stage
    reads: type[Facts]
    check: Callable[[Facts], Iterator[Claim]]
    fires_on: Mapping[str, tuple[Facts, str]]
    silent_on: Mapping[str, Facts]
    since: str
    drill: tuple[str, ...] = ()
    unstaged: str = ""


@dataclass(frozen=True, kw_only=True)
class Drill:
    """One fault, staged on a real framework.

    Attributes:
        script: the job that runs, a path relative to ``drills/jobs``, or "" for none.
        workers: how many of it.
        guilty: the rank that carries the fault, -1 where no rank does.
        expects: the rule that must name it.
        outside: done by the drill to the guilty process once it trains: its pid in, nothing out.
        heal: undoes ``outside``, so that nothing is left behind.
        inside: whether the script itself fails, told by ``--fault NAME``.
        arguments: further arguments of the script.
        options: further options of ``allaboard run``.
        exit_codes: those that ``allaboard run`` may end with.
        allowed: further rules that may speak too, such as those on the ranks that fell.
        needs: what the machine must have ("root", "cgroup-memory").
    """

    script: str
    expects: str
    workers: int = 3
    guilty: int = 1
    outside: Callable[[int], None] | None = None
    heal: Callable[[int], None] | None = None
    inside: bool = False
    arguments: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    exit_codes: tuple[int, ...] = (1,)
    allowed: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Resolver:
    """One source of configuration, in ``resolve/<source>.py``, whose file name is its name.

    Attributes:
        resolve: what it finds in the material, nothing where the source is absent; pure, and
            never raises on bad input: what cannot be read becomes a Problem of the PartialSpec.
        write: a spec as this source's own text (`allaboard spec --as`); None where it has none.
            Raises ValueError, with the sentence to print, where the spec lacks what it needs.
    """

    resolve: Callable[[Material], Iterable[PartialSpec]]
    write: Callable[[ClusterSpec], str] | None = None


class Clock(Protocol):
    """Where the shells take the time from."""

    def monotonic(self) -> float:
        """Seconds of CLOCK_MONOTONIC."""
        ...

    def utc(self, monotonic: float) -> str:
        """The wall time of a monotonic time, ISO 8601 with milliseconds, ending in Z."""
        ...
