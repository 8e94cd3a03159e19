"""`allaboard drill [NAME]`: put a fault into a small real job, and see whether it is found."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from allaboard.contracts import FEWEST, MOST, USUAL, Drill
from allaboard.options.usage_error import UsageError

if TYPE_CHECKING:
    from allaboard.drills.run_drill import Rehearsal
    from allaboard.options.command_parser import CommandParser

MAX_SHOWN_OUTPUT = 3000
"""Characters of the run's output that are shown of a drill that failed."""


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments of `drill`."""
    from allaboard.options.value_types import WholeNumber

    parser.describe(
        "[OPTIONS] [NAME]",
        "Put a fault into a small real job under `allaboard run`, and see whether it is found.",
        "Exit code: 0 the fault was found, 1 it was not, 2 usage error, or a drill that cannot run here.",
        "allaboard drill",
        "allaboard drill other-order -n 4",
    )
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="the drill to run; without a name, all drills are listed",
    )
    parser.complete_value("name", drill_names)
    parser.add_argument(
        "-n",
        dest="workers",
        metavar="N",
        type=WholeNumber(FEWEST, MOST),
        help=f"start N workers, {FEWEST} to {MOST} (default: {USUAL}, or what the drill needs)",
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show everything that the run printed"
    )


def drill_names() -> Iterable[str]:
    """Return the name of every drill."""
    from allaboard.drills import run_drill

    return run_drill.all_drills()


def main(arguments: Sequence[str]) -> int:
    """Run a drill, or list all, and return the exit code.

    Raises:
        UsageError: there is no such drill, or it cannot run here or with so many workers.
    """
    from allaboard.options.command_parser import build_parser

    options = build_parser("drill", add_arguments).parse_arguments(arguments)
    from allaboard.drills import run_drill
    from allaboard.report.finding_text import finding_lines

    drills = run_drill.all_drills()
    name = options.name
    if name is None:
        _list_drills(drills)
        return 0
    if name not in drills:
        raise UsageError(
            f"no drill {name!r}{_suggestion(name, drills)} `allaboard drill` lists all"
        )
    if missing := run_drill.lacks(drills[name]):
        raise UsageError(f"{name} cannot be staged here: {missing}")
    if options.workers and (reason := _unfit_reason(name, options.workers, drills[name])):
        raise UsageError(f"-n {options.workers}: {reason}")
    # Where it can be read while the drill runs, and is not in what is piped on.
    sys.stderr.write(f"staging {name}: {drills[name].title} (this may take a minute)\n")
    result = run_drill.rehearse(name, workers=options.workers or USUAL)
    if options.verbose:
        print(result.output)
    for finding in result.findings:
        for line in finding_lines(finding):
            print(line)
    if result.passed:
        print(f"{name}: {verdict(result)}")
        return 0
    sys.stderr.write(f"{name}: {verdict(result)}\n")
    if not options.verbose:
        sys.stderr.write(result.output[-MAX_SHOWN_OUTPUT:] + "\n")
    return 1


def _list_drills(drills: Mapping[str, Drill]) -> None:
    """Print each drill's name, the rule that must report its fault, and what that fault is: in a pipe one
    line each."""
    from allaboard.report.plain_text import output_width, wrap_words

    width = output_width(1) if sys.stdout.isatty() else sys.maxsize
    for name, drill in drills.items():
        head = f"{name:<24}  {drill.expects:<7}  "
        for line in wrap_words(drill.title, width, head, " " * len(head)):
            print(line)


def verdict(result: Rehearsal) -> str:
    """Return how a drill went, as a sentence without its subject: what was reported and after how long, or
    everything that is not as it should be."""
    delay = f" {result.seconds:.1f} s after the fault" if result.seconds is not None else ""
    wrong = []
    if not result.found:
        wrong.append(f"{result.rule} did not report it")
    elif not result.right_rank:
        wrong.append(f"{result.rule} reported another rank{delay}")
    if not result.right_exit:
        wrong.append(f"allaboard run ended with exit code {result.exit_code}")
    if result.others:
        wrong.append("also reported: " + ", ".join(finding.rule for finding in result.others))
    if result.left_behind:
        wrong.append("files of the run were left in memory")
    return "; ".join(wrong) or f"{result.rule} reported it{delay}"


def _suggestion(name: str, drills: Iterable[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, list(drills), n=1)
    return f"; did you mean {close[0]}?" if close else ";"


def _unfit_reason(name: str, workers: int, drill: Drill) -> str:
    """Return why the drill cannot be staged with this many workers, or ""."""
    if drill.workers and workers != drill.workers:
        return f"{name} needs {drill.workers} workers; leave -n out"
    if workers < drill.fewest:
        return f"{name} needs {drill.fewest} or more: if two workers differ, neither is known to be wrong"
    return ""
