"""What torchrun itself writes: exceptions of its rendezvous of hosts, and its summary of failed workers.

What the summary calls the root cause is the first failure that torchrun saw: where a rank left with exit code
0, it names an innocent one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from allaboard.analysis.failures.launcher_errors import SUMMARY_ROW
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Exit, Glimpse, Heard, Severity, Testimony
from allaboard.facts.signal_name import signal_name
from allaboard.formats.dumps.python_tracebacks import Traceback, find_tracebacks

_RAISED = r"torch\.distributed\.elastic\.rendezvous\.api\."
_SOURCE = "its wording from the source of PyTorch 2.13.0"

SPARE_WORDS = (
    "Rendezvous gracefully exited: ",
    "AttributeError: 'NoneType' object has no attribute 'is_failed'",
)
"""What torchrun logs of a host that is not needed, and what it raises then (2.0 to 2.14)."""


def _spare(words: str) -> KnownMessage:
    """Return the message of a host that came too many."""
    return KnownMessage(
        key=words,
        pattern=re.escape(words),
        rule="LOG013",
        says="torchrun on this host was one more than --nnodes takes, and waited as a spare until the others "
        "ended the rendezvous",
        fix="start as many torchruns as the largest number in --nnodes=MIN:MAX; if another run is meant, "
        "give it an --rdzv-id and an endpoint of its own",
        severity=Severity.WARNING,
        sample=f"{words}closed",
        source="its wording from the source of PyTorch 1.9 to 2.14 (elastic/agent/server/api.py)",
    )


MESSAGES = (
    KnownMessage(
        key="RendezvousTimeoutError",
        pattern=_RAISED + r"RendezvousTimeoutError",
        rule="JOIN001",
        says="torchrun's rendezvous was not complete in time: fewer hosts came than --nnodes asks for",
        fix="start torchrun on every host, with the same --rdzv-id, --rdzv-endpoint and --nnodes; "
        "allaboard preflight, started as the job is, names who is missing",
        proves_not="which host: torchrun knows how many there are to be, not who",
        sample="torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
        source=_SOURCE,
    ),
    KnownMessage(
        key="RendezvousConnectionError",
        pattern=_RAISED + r"RendezvousConnectionError",
        rule="JOIN007",
        says="torchrun did not reach the place where its hosts are to meet (--rdzv-endpoint)",
        fix="start torchrun on the host of the endpoint too; compare --rdzv-endpoint on all hosts, and try "
        "it from here: nc -vz HOST PORT",
        proves_not="that nobody is there: a wrong address and a firewall look the same",
        sample="torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the "
        "C10d store has failed. See inner exception for details.",
        source=_SOURCE,
    ),
    KnownMessage(
        key="has failed to send a keep-alive heartbeat to the rendezvous",
        # Said once, it may have been slow: it tries every few seconds.
        pattern=r"The node '(?P<node>[^'\n]{1,300})' has failed to send a keep-alive heartbeat to the "
        r"rendezvous '[^'\n]{0,200}' due to an error of type (?P<type>\w{1,60})(?=.{1,3000}?"
        r"The node '(?P=node)' has failed to send a keep-alive heartbeat)",
        rule="LOG002",
        says="torchrun of node {node} does not reach its rendezvous any more ({type}): whoever serves it, "
        "mostly the torchrun on the host of --rdzv-endpoint, has ended or does not answer",
        fix="read the log of torchrun on the host of --rdzv-endpoint: did it end, and why? If this node "
        "still runs, end its torchrun and start the job again: without a rendezvous it restarts nothing",
        proves_not="that the training failed: where it was done, the first host may have left before",
        severity=Severity.WARNING,
        sample="The node 'n7_1872_0' has failed to send a keep-alive heartbeat to the rendezvous 'none' due "
        "to an error of type RendezvousConnectionError.\nThe node 'n7_1872_0' has failed to send a "
        "keep-alive heartbeat to the rendezvous 'none' due to an error of type RendezvousConnectionError.",
        source="its wording from the source of PyTorch 1.9 to 2.13 (dynamic_rendezvous.py)",
    ),
    KnownMessage(
        key=" death signal, shutting down workers",
        pattern=r"Received (?:Signals\.)?(?P<number>\d+|SIG[A-Z]+) death signal, shutting down workers",
        rule="EXIT008",
        says="a torchrun was told to end by signal {number}, and ended its workers; others then find the "
        "rendezvous closed",
        fix="ask who ended it: the batch system (sacct, kubectl describe pod), a preempted machine, a closed "
        "terminal, or a person; then start it again from its last checkpoint",
        explains=("JOIN008",),
        proves_not="who sent the signal",
        sample="W0409 07:28:49.530000 1359 torch/distributed/elastic/agent/server/api.py:719] Received 15 "
        "death signal, shutting down workers",
        source="its wording from the source of PyTorch 1.9 to 2.13 (elastic/agent/server/api.py)",
    ),
    *map(_spare, SPARE_WORDS),
    KnownMessage(
        key="RendezvousClosedError",
        pattern=rf"(?:{_RAISED}|\"message\": \")RendezvousClosedError",
        rule="JOIN008",
        says="torchrun came to a rendezvous that is closed already: the run of this --rdzv-id has ended",
        fix="give each run an --rdzv-id of its own; if this host was late, start all hosts again",
        proves_not="whether that was an earlier run, or this one without this host",
        sample="torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
        source=_SOURCE,
    ),
)


CANNOT_MEET = "JOIN007"
"""The rule of a meeting place that was not reached."""
_FIRST_CONNECTION = ("_create_tcp_store", "_create_etcd_client", "_create_file_store")
"""Functions in which torchrun connects for the first time."""
_BROKEN = re.compile(
    r"Broken pipe|[Cc]onnection (?:reset|was (?:likely )?closed|aborted)|got 0 bytes|[Ee]nd of file"
)
"""Inner errors of a connection that had been made."""
MAX_CHARS_BEFORE = 6000
"""Characters before the exception in which its inner error stands."""
_SERVER = re.compile(r"remote=\[(?:::ffff:)?(?P<host>[^\]\s]+)\]:(?P<port>\d{1,5})")
"""Matches the server's address in warnings of torch's store (since 2.2)."""


_ADDRESS_KNOWN = "client socket has timed out"
"""The store's own message, which names the address at which nobody answered."""


def _rendezvous_errors(exhibit: Exhibit) -> tuple[Heard, ...]:
    """Return how torchrun's own rendezvous failed, or lost its store later."""
    heard = find_known_messages(exhibit, MESSAGES)
    if not heard:
        return ()
    tracebacks = [
        t
        for t in find_tracebacks([line.rstrip("\r") for line in exhibit.text.split("\n")])
        if t.type == "RendezvousConnectionError"
    ]
    heard = tuple(_as_closed_by_another(h, exhibit.text) for h in heard)
    return tuple(
        _as_lost_store(h, exhibit.text, tracebacks)
        if h.rule == CANNOT_MEET and _had_met(exhibit.text, tracebacks)
        else h
        for h in heard
        if h.rule != CANNOT_MEET or _ADDRESS_KNOWN not in exhibit.text
    )


CLOSED = "JOIN008"
"""The rule of a rendezvous that is closed when torchrun comes."""
_RAN_BEFORE = re.compile(
    r"Rendezvous complete for workers|Worker group (?:FAILED|UNHEALTHY)|will restart worker group"
    r"|Starting worker group|attempts? left"
)
"""Words of torchrun about workers that it had started, or starts anew."""
_OWN_FAILURE = re.compile(r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+)")


def _as_closed_by_another(heard: Heard, text: str) -> Heard:
    """Return a closed rendezvous as what it means for a torchrun whose workers had already run."""
    if heard.rule != CLOSED or not _RAN_BEFORE.search(text, 0, text.find("RendezvousClosedError")):
        return heard
    own_failure = _OWN_FAILURE.search(text)
    failed = (
        f" after its local rank {own_failure['local']} had failed (exit code {own_failure['code']})"
        if own_failure
        else ""
    )
    return msgspec.structs.replace(
        heard,
        says=f"torchrun could not start its workers again{failed}: another torchrun of the job had ended, "
        "which closes the rendezvous for all",
        fix="read the logs of the other hosts' torchruns: how did the first of them end? A torchrun that is "
        "ended by a signal closes the rendezvous; all must be started again, with a new --rdzv-id",
        proves_not="which failed first: a worker here, or another host",
    )


def _had_met(text: str, tracebacks: Sequence[Traceback]) -> bool:
    """Return True if the connection that failed had been made before."""
    if tracebacks:
        functions = {frame.function for t in tracebacks for frame in t.frames}
        return functions.isdisjoint(_FIRST_CONNECTION)
    position = text.find("RendezvousConnectionError: ")
    return bool(_BROKEN.search(text, max(0, position - MAX_CHARS_BEFORE), max(0, position)))


def _as_lost_store(heard: Heard, text: str, tracebacks: Sequence[Traceback]) -> Heard:
    """Return what torchrun raises without its store as the loss of that store."""
    server = _SERVER.search(text)
    address = f"{server['host']}:{server['port']}" if server is not None else ""
    at_address = f" at {address}" if address else ""
    functions = {frame.function for t in tracebacks for frame in t.frames}
    # It meets the other hosts in `next_rendezvous`, and asks for new ones while its workers run.
    when = "while the hosts met" if "next_rendezvous" in functions else "while the job ran"
    # Of a job on one host, another one on it may be the server's.
    is_local = server is not None and bool(
        re.fullmatch(r"127\.[\d.]+|::1|localhost", server["host"])
    )
    other_job = (
        "another job of this host may have served it" if is_local else "if it was another job's"
    )
    return msgspec.structs.replace(
        heard,
        rule="EXIT005",
        says=f"the store of torchrun's rendezvous{at_address} was lost {when}: the torchrun that served it "
        "has ended",
        fix=f"read the log of the torchrun that served it{at_address}: how did it end? {other_job}: torchrun "
        "--standalone for a job on one host, else --rdzv-endpoint with a port of its own and an --rdzv-id of "
        "its own",
        explains=(CANNOT_MEET,),
        proves_not="why it ended: it may have finished, failed, or been another job's",
    )


_FAILURE = re.compile(
    r"\n\[\d+\]:\n  time      : (?P<time>\S+)\n  host      : (?P<host>\S+)\n"
    r"  rank      : (?P<rank>\d+) \(local_rank: \d+\)\n"
    r"  exitcode  : (?P<code>-?\d+) \(pid: (?P<pid>\d+)\)"
)
_CLOSING_SIGNAL = re.compile(r"Sending process (\d+) closing signal (SIG[A-Z]+)")
_ROOT_CAUSE = "Root Cause (first observed failure):"
MAX_ROOT_CHARS = 80
"""Characters between these words and the worker that they are about."""
MAX_FAILURES = 100_000
"""Failures that are read of one summary."""


def _failed_workers(exhibit: Exhibit) -> tuple[Glimpse, ...]:
    """Return the ends of the workers that torchrun's summary lists."""
    text = exhibit.text
    if SUMMARY_ROW not in text:
        return ()
    closing_signals = {int(m[1]): m[2] for m in _CLOSING_SIGNAL.finditer(text)}
    glimpses = []
    matches = [m for m, _ in zip(_FAILURE.finditer(text), range(MAX_FAILURES), strict=False)]
    # Its times are whole seconds: of several workers of one second it saw this one first.
    root = text.rfind(_ROOT_CAUSE)
    matches.sort(key=lambda m: not 0 <= root <= m.start() <= root + MAX_ROOT_CHARS)
    for match in matches:
        code, pid = int(match["code"]), int(match["pid"])
        origin = exhibit.place_of_line(text.count("\n", 0, match.start()) + 1)
        signal_number = -code if code < 0 else None
        process_end = Exit(
            ended_at=_unix_time(match["time"]),
            code=code if signal_number is None else None,
            signal=signal_number,
            ours=signal_number is not None
            and closing_signals.get(pid) == signal_name(signal_number),
        )
        glimpses.append(
            Glimpse(
                origin=origin,
                rank=int(match["rank"]),
                pid=pid,
                host=match["host"],
                exit=process_end,
            )
        )
    return tuple(glimpses)


def _unix_time(text: str) -> float:
    try:
        return datetime.strptime(text, "%Y-%m-%d_%H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard, glimpses = _rendezvous_errors(exhibit), _failed_workers(exhibit)
    return Testimony(heard=heard, glimpses=glimpses) if heard or glimpses else None


READER = LogReader(read=read_log)
