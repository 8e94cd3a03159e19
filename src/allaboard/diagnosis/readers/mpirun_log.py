"""What MPI's launchers write: who ended first, or why none was started.

Open MPI's mpirun (and its prterun), and Hydra, which starts the processes of MPICH, Intel MPI and MVAPICH2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.analysis.log_ends.post_traceback_output import training_over_line, trains_on_after
from allaboard.analysis.log_messages import find_known_messages
from allaboard.contracts import LogReader
from allaboard.diagnosis.wordings.hydra_messages import HYDRA_MESSAGES
from allaboard.diagnosis.wordings.open_mpi_messages import (
    LINK_WORDS,
    MPI_ABORT,
    OPEN_MPI_MESSAGES,
    TRANSPORT_MESSAGES,
)
from allaboard.facts import Exhibit, Exit, Glimpse, Heard, Testimony
from allaboard.facts.signal_name import VALID_SIGNALS
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

MESSAGES = (*OPEN_MPI_MESSAGES, *TRANSPORT_MESSAGES, *HYDRA_MESSAGES)
MIN_STEPS_AFTER = 2
"""Lines about loss or steps after a failed connection that show that the job found another way."""
_SIGNAL = re.compile(
    r"noticed that process rank (?P<rank>\d{1,7}) with PID (?P<pid>\d{1,9}) on node (?P<host>\S{1,255})"
    r"\s+exited on\s+signal (?P<signal>\d{1,2})\b"
)
_CODE = re.compile(
    r"The first process to do so was:\s+Process name: \[[^\n]{1,200},(?P<rank>\d{1,7})\]\s+"
    r"Exit code: +(?P<code>\d{1,3})"
)
_PASSING = (
    "is failing to make progress on posting",
    "mca_btl_tcp_endpoint_complete_connect",
    "inbound MPI TCP connection request from a peer",
    "[btl_tcp_frag.c:",
)
"""Messages after which a job may find another way."""
_BLOCK = re.compile(
    r"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES[^\n]*\n"
    r"(?:=   (?:RANK (?P<rank>\d{1,7}) )?PID (?P<pid>\d{1,9}) RUNNING AT (?P<host>\S{1,255})[^\n]*\n)?"
    r"=   (?:EXIT CODE: (?P<code>\d{1,6})|(?:KILLED BY|EXIT) SIGNAL: (?P<signal>\d{1,2}))[^\n]*\n"
    r"(?:=[^\n]*\n){0,6}(?:\s*YOUR APPLICATION TERMINATED WITH THE EXIT STRING: [^\n(]{1,80}"
    r"\(signal (?P<named>\d{1,2})\))?"
)
_HYDRA_ABORT = re.compile(
    r"application called MPI_Abort\([^)\n]{1,80}, (?P<code>-?\d{1,9})\) - process (?P<rank>\d{1,7})"
)
_MPICH_ABORT = re.compile(r"\bAbort\((?P<code>\d{1,10})\)")
_SHOWN_AS_SIGNAL = {4, 6, 7, 8, 9, 11, 13, 15}
"""Numbers that Hydra shows of a process that a signal ended: it prints the raw wait status, of which the
lowest seven bits are the signal, and the eighth tells of a core."""
_CORE_BIT = 0x80


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    glimpses: list[Glimpse] = []
    for match in _SIGNAL.finditer(text):
        if int(match["signal"]) in VALID_SIGNALS:
            line = " ".join(match[0].split())
            end = Exit(ended_at=0.0, signal=int(match["signal"]), last_line=line)
            glimpses.append(
                Glimpse(
                    origin=exhibit.place_of_line(text.count("\n", 0, match.start())),
                    rank=int(match["rank"]),
                    pid=int(match["pid"]),
                    host=match["host"],
                    exit=end,
                )
            )
    # A traceback that names no rank is of this process: its exit code tells nothing more.
    if TRACEBACK_HEAD not in text:
        for match in (*_CODE.finditer(text), *MPI_ABORT.finditer(text)):
            place = exhibit.place_of_line(text.count("\n", 0, match.start()))
            end = Exit(ended_at=0.0, code=int(match["code"]) & 0xFF or 1)
            glimpses.append(Glimpse(origin=place, rank=int(match["rank"]), exit=end))
    glimpses.extend(_ends_of_hydra(exhibit))
    messages = [m for m in MESSAGES if m.key not in _PASSING or not _has_trained_after(text, m.key)]
    if " unit: -" in text:  # PSM says more than libfabric, which used it
        messages = [m for m in messages if m.key != " failed (ofi_"]
    heard = _one_link(find_known_messages(exhibit, messages))
    return Testimony(heard=heard, glimpses=tuple(glimpses[:1000])) if heard or glimpses else None


def _one_link(heard: tuple[Heard, ...]) -> tuple[Heard, ...]:
    """Return the messages with the first of the links that broke: a rank that is lost breaks them all."""
    links = [h for h in heard if h.says.startswith(LINK_WORDS)]
    return tuple(h for h in heard if h not in links[1:])


def _has_trained_after(text: str, key: str) -> bool:
    return trains_on_after(text, key, MIN_STEPS_AFTER) or bool(training_over_line(text))


def _ends_of_hydra(exhibit: Exhibit) -> Iterator[Glimpse]:
    text = exhibit.text
    # A traceback that names no rank is of the process that ended: its exit code tells nothing more.
    has_traceback = TRACEBACK_HEAD in text
    # The code of an abort is cut to its lowest byte, which then looks like a signal.
    abort_codes = {int(m["code"]) & 0xFF for m in _MPICH_ABORT.finditer(text)}
    for match in _BLOCK.finditer(text):
        code, ended_by = _decode(match)
        if ended_by is not None and int(match["code"] or -1) in abort_codes:
            code, ended_by = int(match["code"]), None
        if ended_by is None and has_traceback:
            continue
        line = " ".join(match[0].replace("=   ", "").split())[:300]
        yield Glimpse(
            origin=exhibit.place_of_line(text.count("\n", 0, match.start())),
            rank=int(match["rank"] or -1),
            pid=int(match["pid"] or 0),
            host=match["host"] or "",
            exit=Exit(ended_at=0.0, code=code, signal=ended_by, last_line=line),
        )
    for match in () if has_traceback else _HYDRA_ABORT.finditer(text):
        yield Glimpse(
            origin=exhibit.place_of_line(text.count("\n", 0, match.start())),
            rank=int(match["rank"]),
            exit=Exit(ended_at=0.0, code=int(match["code"]) or 1, last_line=match[0]),
        )


def _decode(match: re.Match[str]) -> tuple[int | None, int | None]:
    """Return the exit code, or the signal, of a process that Hydra reports."""
    named = match["signal"] or match["named"]
    status = int(match["code"] or 0)
    number = status & ~_CORE_BIT
    if status and number in _SHOWN_AS_SIGNAL:
        return None, number
    if named and int(named) in VALID_SIGNALS:
        return None, int(named)
    return status, None


READER = LogReader(read=read_log)
