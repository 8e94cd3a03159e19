"""A worker ended with an exception of its own.

## Why it matters
In a screen full of tracebacks one is the cause; the others report a closed connection. The first one is
named here with the line of your code, and those that failed because of it are listed.

## What to do
Fix that line. If several ranks raise the same exception, they are listed together. If the message says that
open files, space or threads are used up, the line is only the first one that wanted one more: the finding
then names the limit and what helps. It also says what helps against errors that frameworks raise when a job
is set up wrongly: a variable that no launcher has set, a GPU that the rank does not see, a model that is
not the same on all ranks. Of an evaluator it is a warning, and ends no job: the training goes on without it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from allaboard.analysis.collectives.unused_parameters import parameters_without_gradient
from allaboard.analysis.failures.dataloader_worker import describe_loader_worker_end
from allaboard.analysis.failures.evaluator_failure import soften_evaluator_claim
from allaboard.analysis.failures.failure_causality import (
    FailureOrder,
    must_delay_report,
    order_failures,
    was_interrupted,
)
from allaboard.analysis.failures.known_errors import known_error_advice
from allaboard.analysis.failures.out_of_memory import is_out_of_memory
from allaboard.analysis.failures.port_in_use import failed_on_taken_port
from allaboard.analysis.failures.resource_exhaustion import find_exhaustion
from allaboard.analysis.member_names import names
from allaboard.analysis.network.address_families import has_met
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, Frame, JobView, Member, Phase, Raised, Stage
from allaboard.facts.samples import EADDRINUSE, coming, ended, evaluator, held, job, waiting

QUIT = "BdbQuit"
"""What Python's debugger raises when it is left, or its input ends."""

OF_A_CHILD = ("CalledProcessError", "ChildFailedError")
"""What is raised because a command that was run has failed, as launchers do."""


def check(view: JobView) -> Iterator[Claim]:
    found = order_failures(view)
    same: dict[tuple[str, str, bool], list[Member]] = defaultdict(list)
    for one in found.own_failures:
        if one.raised is None or is_out_of_memory(one.raised):
            continue  # RES001 tells it
        if (
            was_interrupted(one)
            or describe_loader_worker_end(one)
            or failed_on_taken_port(one)
            or has_met(view, one)
        ):
            continue  # these have rules of their own
        if not must_delay_report(view, one):
            aside = one in found.evaluators
            same[one.raised.type, str(one.raised.where), aside].append(one)
    for members in same.values():
        yield soften_evaluator_claim(view, members[0], _claim(view, members, found))


def _claim(view: JobView, members: list[Member], found: FailureOrder) -> Claim:
    first = members[0]
    error = first.raised
    assert error is not None
    if error.type == QUIT and error.where is not None:
        return _debugger(members, error.where, found)
    where = f" at {error.where}" if error.where is not None else ""
    place = f"{error.where.file}:{error.where.line}" if error.where is not None else "excepthook"
    evidence = [Evidence(f"{error.type}: {error.message[:300]}", place)]
    unused = parameters_without_gradient(error)
    if unused is not None:
        evidence.append(Evidence(f"{unused} got no gradient in the step before", "DDP's reducer"))
    if first.step:
        evidence.append(Evidence(f"after step {first.step}", "black box"))
    used_up = find_exhaustion(view, first, error)
    if used_up is not None:
        evidence += used_up.evidence
    evidence += found.consequence_evidence(first)
    return Claim(
        summary=f"{names(members)} raised {error.type}{where}",
        who=tuple(m.who for m in members),
        evidence=tuple(evidence),
        fix=used_up.fix if used_up is not None else _fix(error, place, first.log),
        since=error.at,
    )


def _fix(error: Raised, place: str, log: str) -> str:
    if error.type in OF_A_CHILD:
        return f"see in {log} why the command that it ran failed: that is what to fix"
    if error.where is None and not known_error_advice(
        error
    ):  # a syntax error has no frame: its message names the place
        return f"read {log}: the whole traceback is there"
    unused = parameters_without_gradient(error)
    if unused is not None:
        return (
            f"see why {unused} had no part in the loss of the step before (numbers count "
            "model.named_parameters() that require a gradient); if that is intended: DDP(..., "
            "find_unused_parameters=True)"
        )
    return known_error_advice(error) or f"fix {place}; the whole traceback is in {log}"


def _debugger(members: list[Member], where: Frame, found: FailureOrder) -> Claim:
    """Python's debugger, which stops at the line after the one that called it."""
    first = members[0]
    assert first.raised is not None
    return Claim(
        summary=f"{names(members)} ended in a debugger that had no input, or was told to quit, at {where}",
        who=tuple(m.who for m in members),
        evidence=(
            Evidence(
                f"{QUIT}: its input ended, or it was told to quit", f"{where.file}:{where.line}"
            ),
            *found.consequence_evidence(first),
        ),
        fix=f"remove the breakpoint() or pdb.set_trace() that {where.function} ran just before line "
        f"{where.line}: grep -nE 'breakpoint|set_trace' {where.file}",
        since=first.raised.at,
    )


_LOST = ("RuntimeError", "Connection closed by peer [127.0.0.1]:18334")
_UNUSED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error "
    "indicates that your module has parameters that were not used in producing loss.\nParameter indices "
    "which did not receive grad for rank 1: 2 3\n In addition, you can set TORCH_DISTRIBUTED_DEBUG"
)
_REPLACED = (
    "pybind11::error_already_set: MISMATCH of original and normalized active exception types: ORIGINAL "
    "UnavailableError REPLACED BY KeyboardInterrupt: <EMPTY MESSAGE>"
)
_EARLY = {"phase": Phase.IMPORTED, "declared": None, "round": 0}
RULE = Rule(
    stage=Stage.EXIT,
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "one rank, the others fell": (
            job(
                ended(0, at=95.3, raised=_LOST),
                ended(1, raised=("ValueError", "bad batch")),
                waiting(2),
            ),
            "worker 1 raised ValueError at train.py:41 in train",
        ),
        "DDP finds that a part of the model had no gradient": (
            job(ended(1, raised=("RuntimeError", _UNUSED)), waiting(0)),
            "worker 1 raised RuntimeError at train.py:41 in train",
        ),
        "a breakpoint without a terminal": (
            job(ended(1, raised=("BdbQuit", "")), waiting(0)),
            "worker 1 ended in a debugger that had no input, or was told to quit, at train.py:41 in train",
        ),
        "a limit is reached": (
            job(
                ended(1, raised=("OSError", "[Errno 24] Too many open files: '/data/7.png'")),
                waiting(0),
            ),
            "worker 1 raised OSError at train.py:41 in train",
        ),
        "an evaluator": (
            job(waiting(0), ended(1, raised=("KeyError", "x"), member={"who": evaluator(1)})),
            "evaluator 0 raised KeyError at train.py:41 in train; the training goes on without it",
        ),
        "all the same": (
            job(ended(0, raised=("KeyError", "x")), ended(1, raised=("KeyError", "x"))),
            "worker 0, worker 1 raised KeyError at train.py:41 in train",
        ),
    },
    silent_on={
        "its port was taken": job(
            ended(0, raised=("DistNetworkError", EADDRINUSE)), ended(1, raised=_LOST)
        ),
        "only lost its peer": job(ended(0, raised=_LOST), ended(1, at=94.0, signal=9)),
        "died before init while others wait": job(
            held(0), ended(1, raised=("KeyError", "x"), member=_EARLY), rolled_at=None
        ),
        "what became of an interrupt in native code": job(
            ended(0, raised=("RuntimeError", _REPLACED)), waiting(1)
        ),
        "interrupted from outside": job(ended(0, raised=("KeyboardInterrupt", "")), waiting(1)),
        "all is well": job(waiting(0), coming(1)),
    },
    since="0.1",
    drill=(
        "exception",
        "tf-exception",
        "restart-exception",
        "spawned-exception",
        "loader-exception",
    ),
    relations=Relations(begins_failure=True, reports_exception=True, follows_from=("JOIN003",)),
)
