"""What a plug-in of each room must be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from allaboard.facts import Claim, ClusterSpec, Exhibit, Material, PartialSpec, Stage, Testimony
from allaboard.facts.outcome import Retry

Facts = TypeVar("Facts")


class Relations(msgspec.Struct, frozen=True, kw_only=True):
    """How the findings of a rule relate to those of others; the defaults declare no relation.

    ``rules/engine/relations.py`` orders and suppresses findings by these declarations alone. No module
    outside ``rules`` names a rule by its code to decide between findings: it asks for these properties.
    """

    follows_from: tuple[str, ...] = ()
    """Codes of rules that say all of it and more: once one of them has named the same members for certain, a
    finding of this rule about them is not reported; nor is one of a state that passes, while one of them
    names the same members at all."""
    begins_failure: bool = False
    """It names members that failed by themselves: lost peers and silence may follow from that."""
    consequence_only: bool = False
    """It reports that peers were lost, which is never how a failure begins: in logs it gives way to whatever
    did begin it."""
    interruption: bool = False
    """It reports that a person or a scheduler ended the job: what was lost after that is no failure."""
    explains_signal: bool = False
    """It says why the job was asked to end: reported although the job is being ended by a signal."""
    precedes_all: bool = False
    """If it is certain, everything else that ended did so because of it: it comes first of its severity."""
    clean_exit: bool = False
    """Its members ended with exit code 0 while others still waited for them: the job is not complete."""
    reports_exception: bool = False
    """It reports an exception that a member raised, as its first evidence: a rule that recognises the message
    of the exception says more."""
    below_user_code: bool = False
    """It reports a failure below the user's code (GPU, CUDA, NCCL): it takes the place of the exception that
    printed the same message, and that exception's members."""
    bare_exit: bool = False
    """It reports an exit code alone: a message of the same file that says why a process failed says more."""
    last_resort: bool = False
    """It quotes how a process ended, and nothing more is known: reported only if no other error is."""
    raised_as: str = ""
    """Regular expression of what a process prints or raises because of it: such an end is a consequence."""
    ends_by_abort: bool = False
    """A framework that logs it ends its own process by SIGABRT: that signal is not a failure of its own."""
    replaces_message: bool = False
    """If it names a member that ended, a log message of the same rule, which knows no member, says less."""
    reports_silence: bool = False
    """It reports members that are not heard from any more: known ends of all of them explain it."""
    explains: tuple[str, ...] = ()
    """Codes of rules whose log messages, which know no member, say less than it of a member that ended."""
    names_nobody: bool = False
    """It says that no member is missing: not reported if one of unknown rank failed, who may be missing."""
    reports_wait: bool = False
    """It reports members that waited for others until a timeout: a member that failed is why they waited."""
    measured: bool = False
    """It reports a rate or an amount of a training: without a training nothing is measured, and then it
    neither persists nor is over."""
    seen_while_waiting: bool = False
    """It is seen only during an attempt to connect: it is over only once its members have left the operation,
    not between two attempts."""


class Rule(msgspec.Struct, Generic[Facts], frozen=True, kw_only=True):
    """One thing that allaboard can say.

    A rule lives in ``rules/<code>_<name>.py``, whose docstring is its published page, and is the
    ``RULE`` at the end of that file. A family of small rules that differ in a few values is a table
    ``RULES`` in ``rules/<family>_<name>.py``: ``<code>_<name>`` to rule, and each rule has its ``page``.
    """

    reads: type[Facts]
    """The type of facts that ``check`` takes; it runs on no other."""
    check: Callable[[Facts], Iterator[Claim]]
    """Facts to claims. Pure: no clock, no file, no network."""
    fires_on: Mapping[str, tuple[Facts, str]]
    """Named facts, each with the summary of the first claim that they must give."""
    silent_on: Mapping[str, Facts]
    """Named facts that look similar and must give no claim: the near misses."""
    stage: Stage | None = None
    """The part of a job's life that it judges; None for that of its family."""
    since: str = "0.1"
    """The first version that has it."""
    drill: tuple[str, ...] = ()
    """Names of the drills that stage it on a real framework."""
    unstaged: str = ""
    """Why no drill can stage it; "" if ``drill`` names one, or for what holds for all of its family."""
    passes: bool = False
    """It reports a state that may pass; once it has passed, that is reported too."""
    needs: tuple[str, ...] = ()
    """Fields of Member: the rule is not run while no member of the job has any of them set, which saves
    a look at thousands of members."""
    relations: Relations = Relations()
    """How its findings relate to those of other rules."""
    retry: Retry | None = None
    """What to do with a job that it ended, unless the claim says it; None for the default of its family."""
    page: str = ""
    """Its published page; "" for the docstring of its file."""


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


class ConfigurationSource(msgspec.Struct, frozen=True, kw_only=True):
    """One source of configuration, in ``configuration/sources/<source>.py``, whose file name is its name."""

    read: Callable[[Material], Iterable[PartialSpec]]
    """Returns what it finds in the material, nothing where the source is absent. Pure; never raises on bad
    input: what cannot be read becomes a Problem of the PartialSpec."""
    write: Callable[[ClusterSpec], str] | None = None
    """Returns a spec as this source's own text (`allaboard spec --as`); None if it has none. Raises
    ValueError, with the sentence to print, if the spec lacks what it needs."""


class LogReader(msgspec.Struct, frozen=True, kw_only=True):
    """A reader of one kind of evidence that other programs leave behind, in
    ``diagnosis/readers/<kind>.py``."""

    read: Callable[[Exhibit], Testimony | None]
    """Returns what an exhibit says, None if it is not of this kind.

    It is pure and never raises on bad input: what cannot be read becomes a note.
    """


class Clock(Protocol):
    """Where the shells take the time from."""

    def monotonic(self) -> float:
        """Seconds of CLOCK_MONOTONIC."""
        ...

    def utc(self, monotonic: float) -> str:
        """The wall time of a monotonic time, ISO 8601 with milliseconds, ending in Z."""
        ...
