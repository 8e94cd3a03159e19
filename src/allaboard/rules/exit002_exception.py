"""A worker exited with an exception of its own.

## Why it matters
Among many tracebacks one is the cause; the others report a closed connection. This finding names the first
one, with the line of your code, and lists those that failed as a consequence.

## What to do
Fix that line. If several ranks raise the same exception, they are listed together. If the message says that
open files, space or threads are used up, the line is only the first one that needed one more: the finding
then names the limit and a remedy. It also gives a remedy for errors that frameworks raise when a job is set
up wrongly: a variable that no launcher has set, a GPU that the rank does not see, a model that differs
between ranks. An exception that comes out of a framework's rendezvous, store, collectives, XLA, session or
launcher is reported by its cause; your line is only where it was called from. For an evaluator this is a
warning and does not end the job: the training goes on without it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from allaboard.analysis.collectives.unused_parameters import parameters_without_gradient
from allaboard.analysis.failures.dataloader_worker import describe_loader_worker_end
from allaboard.analysis.failures.evaluator_failure import soften_evaluator_claim
from allaboard.analysis.failures.exception_retry import retry_of_exception
from allaboard.analysis.failures.failure_causality import (
    FailureOrder,
    must_delay_report,
    order_failures,
    was_interrupted,
)
from allaboard.analysis.failures.known_errors import (
    absent_path,
    known_error_advice,
    known_remedy,
    missing_path_advice,
)
from allaboard.analysis.failures.library_errors import (
    called_from,
    explain_library_error,
    refusing_library,
)
from allaboard.analysis.failures.out_of_memory import is_out_of_memory
from allaboard.analysis.failures.port_in_use import failed_on_taken_port
from allaboard.analysis.failures.resource_exhaustion import find_exhaustion
from allaboard.analysis.log_ends.exception_text import without_boilerplate
from allaboard.analysis.log_ends.start_advice import start_advice
from allaboard.analysis.log_ends.stated_remedy import stated_remedy
from allaboard.analysis.member_names import name_first_members, name_members
from allaboard.analysis.network.address_families import has_met_family_conflict
from allaboard.analysis.stalls.lock_kind import left_threads_clause
from allaboard.contracts import Relations, Rule
from allaboard.facts import Claim, Evidence, Frame, JobView, Member, Phase, Raised
from allaboard.facts.outcome import Retry
from allaboard.facts.samples import (
    EADDRINUSE,
    PEER_LOST,
    arrived_member,
    coming_member,
    ended_member,
    sample_evaluator,
    sample_job,
    waiting_member,
)

DEBUGGER_QUIT = "BdbQuit"
"""The exception that Python's debugger raises when it is quit or its input ends."""

DEVICE_ASSERTION = "device-side assert triggered"
"""What CUDA says of a process in whose kernel an assertion failed; which one, the kernel has printed."""
MAX_ASSERTION_DELAY_S = 4.0
"""Seconds after such an exception for which the end of its process is waited for."""
MAX_MESSAGE_CHARS = 300
"""Characters of an exception's message that are shown."""
MAX_QUOTED_CHARS = 160
"""Characters of it that are quoted in a next step."""
MAX_SHOWN_MESSAGES = 4
"""Different messages of one exception that are shown."""
_NUMBERS = re.compile(r"\b0x[0-9a-f]+\b|\d+")

CHILD_ERRORS = ("CalledProcessError", "ChildFailedError")
"""Exceptions that are raised because a command failed that was run, for example by a launcher."""


def check(view: JobView) -> Iterator[Claim]:
    order = order_failures(view)
    members_by_error: dict[tuple[str, str, bool], list[Member]] = defaultdict(list)
    for member in order.own_failures:
        if member.raised is None or is_out_of_memory(member.raised):
            continue  # RES001 reports it
        if (
            was_interrupted(member)
            or describe_loader_worker_end(member)
            or failed_on_taken_port(member)
            or has_met_family_conflict(view, member)
        ):
            continue  # these have rules of their own
        if not must_delay_report(view, member) and not _may_name_assertion(view, member):
            is_evaluator = member in order.evaluators
            members_by_error[member.raised.type, str(member.raised.where), is_evaluator].append(
                member
            )
    for members in members_by_error.values():
        yield soften_evaluator_claim(view, members[0], _claim(view, members, order))


def _may_name_assertion(view: JobView, member: Member) -> bool:
    """Return True while the log of a rank may yet tell which assertion failed on its GPU: it is read once the
    process has ended."""
    assert member.raised is not None
    is_assertion = DEVICE_ASSERTION in member.raised.message
    age_s = view.now - member.raised.raised_at
    return is_assertion and member.alive and not view.ended and age_s < MAX_ASSERTION_DELAY_S


def _claim(view: JobView, members: list[Member], order: FailureOrder) -> Claim:
    first_member = members[0]
    error = first_member.raised
    assert error is not None
    if error.type == DEBUGGER_QUIT and error.where is not None:
        return _claim_debugger(members, error.where, order)
    location = f" at {error.where}" if error.where is not None else ""
    source = f"{error.where.file}:{error.where.line}" if error.where is not None else "excepthook"
    evidence = _exception_evidence(members, source)
    if DEVICE_ASSERTION in error.message and first_member.exit is not None:
        last_line = first_member.exit.last_line
        if last_line.startswith("Assertion `"):
            evidence.append(Evidence(last_line, first_member.log or "its output"))
    unused = parameters_without_gradient(error)
    if unused is not None:
        evidence.append(Evidence(f"{unused} got no gradient in the previous step", "DDP's reducer"))
    if first_member.step:
        evidence.append(Evidence(f"after step {first_member.step}", "black box"))
    exhaustion = find_exhaustion(view, first_member, error)
    if exhaustion is not None:
        evidence += exhaustion.evidence
    evidence += order.consequence_evidence(first_member)
    if first_member.alive and (kept := left_threads_clause(first_member)):
        evidence.append(Evidence(f"its process is {kept}", "stacks"))
    library_failure = (
        explain_library_error(error) if exhaustion is None and unused is None else None
    )
    if library_failure is not None:
        names = name_members(members)
        library_failure = library_failure.for_several() if len(members) > 1 else library_failure
        cause = library_failure.summary(names)
        if library_failure.is_generic and len(_by_message(members)) > 1:
            cause = f"{names} failed inside the framework: {error.type}"
        fix = library_failure.fix
        if library_failure.is_generic and error.where is not None and first_member.log:
            fix = (
                f"read {first_member.log}: the whole traceback is there; compare what each rank passes at "
                f"{source}"
            )
        return Claim(
            summary=cause + called_from(error),
            who=tuple(m.who for m in members),
            evidence=tuple(evidence),
            fix=fix,
            since=error.raised_at,
            retry=library_failure.retry,
        )
    subject = "the launcher" if first_member.launcher else name_members(members)
    remedy = known_remedy(error) if exhaustion is None and unused is None else None
    if remedy is not None and remedy.cause:
        cause = f": {remedy.cause}"
    else:  # without a line of the user's, the message says most
        message = error.message.partition("\n")[0][:MAX_MESSAGE_CHARS]
        cause = f": {message}" if message and not location else ""
    return Claim(
        summary=f"{subject} raised {error.type}{location}{cause}",
        who=tuple(m.who for m in members),
        evidence=tuple(evidence),
        fix=exhaustion.fix if exhaustion is not None else _fix(error, source, first_member.log),
        since=error.raised_at,
        retry=Retry.RESOURCES if exhaustion is not None else retry_of_exception(error),
    )


def _exception_evidence(members: list[Member], source: str) -> list[Evidence]:
    """Return the exception that the members raised; if their messages differ, those of the first few."""
    members_by_message = _by_message(members)
    evidence = []
    for same in list(members_by_message.values())[:MAX_SHOWN_MESSAGES]:
        error = same[0].raised
        assert error is not None
        owner = f" ({name_first_members(same)})" if len(members_by_message) > 1 else ""
        message = without_boilerplate(error.message)
        if len(message) > MAX_MESSAGE_CHARS:
            message = message[: MAX_MESSAGE_CHARS - 1] + "…"
        evidence.append(Evidence(f"{error.type}: {message}{owner}", source))
    return evidence


def _by_message(members: list[Member]) -> dict[str, list[Member]]:
    """Return the members by the first line of what they raised, in which all numbers are alike."""
    members_by_message: dict[str, list[Member]] = defaultdict(list)
    for member in members:
        message = member.raised.message if member.raised is not None else ""
        members_by_message[_NUMBERS.sub("0", message.partition("\n")[0])].append(member)
    return members_by_message


def _fix(error: Raised, source: str, log: str) -> str:
    if error.type in CHILD_ERRORS:
        return f"see in {log} why the command that it ran failed, and fix that"
    if (advice := missing_path_advice(error)) and not known_error_advice(error):
        return advice
    stated = "" if known_error_advice(error) else stated_remedy(error.message)
    if error.where is None and stated:
        return f"do what its message says: {stated!r}; the whole traceback is in {log}"
    if error.where is None and not known_error_advice(
        error
    ):  # a syntax error has no frame: its message names the place
        return f"read {log}: the whole traceback is there"
    unused = parameters_without_gradient(error)
    if unused is not None:
        return (
            f"see why {unused} had no part in the loss of the previous step (indices count "
            "model.named_parameters() that require a gradient); if that is intended, use DDP(..., "
            "find_unused_parameters=True)"
        )
    if advice := known_error_advice(error):
        return advice
    if stated:
        return (
            f"do what its message says: {stated!r}; if that does not help, look at {source}; the whole "
            f"traceback is in {log}"
        )
    if advice := start_advice(error.message):
        return f"{advice}; the check is at {source}"
    if path := absent_path(error):
        return (
            f"ls -ld {path}   # on its host, in its container: was it to be there? Else fix {source}; the "
            f"whole traceback is in {log}"
        )
    first_line = error.message.partition("\n")[0][:MAX_QUOTED_CHARS]
    if first_line and (library := refusing_library(error)):
        return (
            f"see what {source} passes to {library}, or how that is configured: {library} says "
            f"{first_line!r}; the whole traceback is in {log}"
        )
    return f"fix {source}; the whole traceback is in {log}"


def _claim_debugger(members: list[Member], where: Frame, order: FailureOrder) -> Claim:
    """Report Python's debugger, which stops at the line after the call that starts it."""
    first_member = members[0]
    assert first_member.raised is not None
    return Claim(
        summary=f"{name_members(members)} exited in the debugger, which had no input or was quit, at {where}",
        who=tuple(m.who for m in members),
        evidence=(
            Evidence(
                f"{DEBUGGER_QUIT}: its input ended, or it was quit", f"{where.file}:{where.line}"
            ),
            *order.consequence_evidence(first_member),
        ),
        fix=f"remove the breakpoint() or pdb.set_trace() that {where.function} ran just before line "
        f"{where.line}: grep -nE 'breakpoint|set_trace' {where.file}",
        since=first_member.raised.raised_at,
        retry=Retry.NEVER,
    )


_UNUSED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error "
    "indicates that your module has parameters that were not used in producing loss.\nParameter indices "
    "which did not receive grad for rank 1: 2 3\n In addition, you can set TORCH_DISTRIBUTED_DEBUG"
)
_REPLACED = (
    "pybind11::error_already_set: MISMATCH of original and normalized active exception types: ORIGINAL "
    "UnavailableError REPLACED BY KeyboardInterrupt: <EMPTY MESSAGE>"
)
_LOST_STORE = (
    "RendezvousConnectionError",
    "The connection to the C10d store has failed. See inner exception for details.",
)
_BACKEND = Frame(
    "/v/site-packages/torch/distributed/elastic/rendezvous/c10d_rendezvous_backend.py",
    197,
    "_call_store",
    "raise RendezvousConnectionError(",
)
_EARLY = {"phase": Phase.IMPORTED, "declared": None, "round": 0}
RULE = Rule(
    reads=JobView,
    check=check,
    needs=("exit", "raised"),
    fires_on={
        "torchrun lost the store that another torchrun served": (
            sample_job(
                ended_member(
                    0, raised=_LOST_STORE, frames=(_BACKEND,), member={"launcher": True, "step": 0}
                ),
                launched=0,
            ),
            "the launcher raised RendezvousConnectionError at train.py:41 in train: the store of torchrun's "
            "rendezvous has gone; another torchrun with the same --rdzv-endpoint, which has ended now, may "
            "have served it, or another host of this job",
        ),
        "one worker raised ValueError, and another lost its peer": (
            sample_job(
                ended_member(0, ended_at=95.3, raised=PEER_LOST),
                ended_member(1, raised=("ValueError", "bad batch")),
                waiting_member(2),
            ),
            "worker 1 raised ValueError at train.py:41 in train",
        ),
        "DDP reports parameters that got no gradient": (
            sample_job(ended_member(1, raised=("RuntimeError", _UNUSED)), waiting_member(0)),
            "worker 1 raised RuntimeError at train.py:41 in train",
        ),
        "a breakpoint in a worker that has no terminal": (
            sample_job(ended_member(1, raised=("BdbQuit", "")), waiting_member(0)),
            "worker 1 exited in the debugger, which had no input or was quit, at train.py:41 in train",
        ),
        "a worker has reached the limit on open files": (
            sample_job(
                ended_member(
                    1, raised=("OSError", "[Errno 24] Too many open files: '/data/7.png'")
                ),
                waiting_member(0),
            ),
            "worker 1 raised OSError at train.py:41 in train",
        ),
        "an evaluator raised KeyError": (
            sample_job(
                waiting_member(0),
                ended_member(1, raised=("KeyError", "x"), member={"who": sample_evaluator(1)}),
            ),
            "evaluator 0 raised KeyError at train.py:41 in train; the training goes on without it",
        ),
        "all workers raised the same exception at the same line": (
            sample_job(
                ended_member(0, raised=("KeyError", "x")), ended_member(1, raised=("KeyError", "x"))
            ),
            "worker 0, worker 1 raised KeyError at train.py:41 in train",
        ),
    },
    silent_on={
        "a worker's port was taken, which NET005 reports": sample_job(
            ended_member(0, raised=("DistNetworkError", EADDRINUSE)),
            ended_member(1, raised=PEER_LOST),
        ),
        "a worker only lost its peer, which was killed": sample_job(
            ended_member(0, raised=PEER_LOST), ended_member(1, ended_at=94.0, signal=9)
        ),
        "a worker failed before init while another waits there, which JOIN003 reports": sample_job(
            arrived_member(0),
            ended_member(1, raised=("KeyError", "x"), member=_EARLY),
            rolled_at=None,
        ),
        "an interrupt that native code turned into another error": sample_job(
            ended_member(0, raised=("RuntimeError", _REPLACED)), waiting_member(1)
        ),
        "a worker was interrupted from outside, which EXIT008 reports": sample_job(
            ended_member(0, raised=("KeyboardInterrupt", "")), waiting_member(1)
        ),
        "no worker has failed": sample_job(waiting_member(0), coming_member(1)),
    },
    drill=(
        "exception",
        "tf-exception",
        "restart-exception",
        "spawned-exception",
        "loader-exception",
        "tf-keras-3-fit",
        "tf-one-file",
    ),
    relations=Relations(begins_failure=True, reports_exception=True, follows_from=("JOIN003",)),
)
