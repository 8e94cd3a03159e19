"""Asks the services that a job itself offers: PyTorch's debug server, and NCCL's RAS.

Only where the user names one. Nothing follows a redirect or goes through a proxy; every wait and every
answer is bounded.
"""

from __future__ import annotations

import http.client
import re
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from allaboard.analysis.collectives.nccl_progress import uneven_communicators
from allaboard.diagnosis.instruments import nccl_ras_json, nccl_ras_text
from allaboard.errors import AllaboardError
from allaboard.facts import Exhibit
from allaboard.facts.instruments.nccl_state import NcclStates
from allaboard.formats.dumps.debug_pages import FRONTEND_MARK, WORKER_MARK, as_dump, read_debug_page

CONNECT_TIMEOUT_S = 5.0
"""How long a service gets to accept a connection and to answer what costs nothing."""
ANSWER_TIMEOUT_S = 75.0
"""How long it gets for its answer: PyTorch's server waits 60 s for a rank that is stopped."""
MAX_ANSWER_NBYTES = 256 << 20
"""Bytes of one answer that are read."""
ASK_AGAIN_S = 5.0
"""Seconds until NCCL's service is asked again if its ranks are not equally far: those of a job that trains
never are, but they go on."""
RAS_PORT = 28028
"""Port at which NCCL's service listens on every host of a job, unless NCCL_RAS_ADDR says otherwise."""
RAS_PROTOCOL = 2
"""Version of its protocol; every version answers every other."""
_SCHEME = re.compile(r"(?:http|ras)://\S+")


class EndpointError(AllaboardError):
    """A service that does not answer, or is another one; the message says which."""


def is_endpoint(target: str) -> bool:
    """Return True if a target names a service: ``http://HOST:PORT`` or ``ras://HOST[:PORT]``."""
    return _SCHEME.fullmatch(target) is not None


def write_answers(target: str, folder: Path, sleep: Callable[[float], None] = time.sleep) -> None:
    """Ask the service, and write what it answers into files of this folder.

    Raises EndpointError, with the sentence to print, if nothing of use answers.
    """
    parts = urlsplit(target)
    try:
        port = parts.port
    except ValueError:
        raise EndpointError(f"{target}: the port is no number") from None
    if not parts.hostname:
        raise EndpointError(f"{target}: no host is named")
    try:
        if parts.scheme == "ras":
            answer = ask_ras(parts.hostname, port or RAS_PORT)
            if _shows_uneven_ranks(answer):
                sleep(ASK_AGAIN_S)
                answer += b"\n" + ask_ras(parts.hostname, port or RAS_PORT)
            (folder / "ras.txt").write_bytes(answer)
        elif port is None:
            raise EndpointError(f"{target}: name the port too, as http://{parts.hostname}:25999")
        else:
            _write_debug_answers(parts, port, folder)
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise EndpointError(f"{target}: {reason.lower()}") from None


def _write_debug_answers(parts: SplitResult, port: int, folder: Path) -> None:
    host = parts.hostname or ""
    status, front_page = _request(host, port, "GET", "/", CONNECT_TIMEOUT_S)
    text = front_page.decode("utf-8", "replace")
    if FRONTEND_MARK in text:
        _write_frontend_answers(host, port, folder)
    elif WORKER_MARK in text:
        _write_worker_answers(host, port, folder)
    else:
        raise EndpointError(
            f"{parts.geturl()}: no debug server of PyTorch answers there (HTTP status {status})"
        )


def _write_frontend_answers(host: str, port: int, folder: Path) -> None:
    """Write the stacks and the Flight Recorder of all ranks, which the server of rank 0 asks."""
    paths = ("/stacks", "/fr_trace_json", "/fr_trace_nccl_json")
    with ThreadPoolExecutor(len(paths)) as pool:
        answers = pool.map(lambda p: _request(host, port, "GET", p, ANSWER_TIMEOUT_S), paths)
    stacks, *traces = [
        read_debug_page(body.decode("utf-8", "replace")) if status == 200 else []
        for status, body in answers
    ]
    if stacks:
        (folder / "stacks.txt").write_text(as_dump(stacks), encoding="utf-8")
    for backend, trace in zip(("cpu", "nccl"), traces, strict=True):
        for answer in trace:
            if answer.status == 200 and answer.text.strip():
                file = folder / f"{backend}-fr-rank{answer.rank}.json"
                file.write_text(answer.text.strip(), encoding="utf-8")


def _write_worker_answers(host: str, port: int, folder: Path) -> None:
    """Write the stacks and the Flight Recorder of one rank, whose number its server does not tell."""
    for handler, name in (
        ("dump_traceback", "stacks.txt"),
        ("fr_trace_json", "trace.json"),
        ("dump_nccl_trace_json", "nccl-trace.json"),
    ):
        status, body = _request(host, port, "POST", f"/handler/{handler}", ANSWER_TIMEOUT_S)
        if status == 200 and body.strip():
            (folder / name).write_bytes(body)


def _request(host: str, port: int, method: str, path: str, timeout_s: float) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, _read_all(response.read, timeout_s)
    finally:
        connection.close()


def _read_all(read: Callable[[int], bytes], timeout_s: float) -> bytes:
    """Return everything up to the limits; a server that sends a byte now and then holds nobody."""
    deadline, chunks, size = time.monotonic() + timeout_s, [], 0
    while size < MAX_ANSWER_NBYTES and time.monotonic() < deadline:
        chunk = read(1 << 16)
        if not chunk:
            break
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks)


def ask_ras(host: str, port: int) -> bytes:
    """Return what NCCL's service says of the whole job: as JSON, or as text where NCCL is older than 2.28.

    The protocol is that of NCCL's own client (src/ras/client.cc). Raises OSError, or EndpointError if another
    service answers.
    """
    with socket.create_connection((host, port), timeout=CONNECT_TIMEOUT_S) as connection:
        connection.settimeout(ANSWER_TIMEOUT_S)
        with connection.makefile("rwb") as stream:

            def command(line: str) -> bytes:
                stream.write(f"{line}\n".encode())
                stream.flush()
                return stream.readline(4096)

            if not command(f"CLIENT PROTOCOL {RAS_PROTOCOL}").startswith(b"SERVER PROTOCOL"):
                raise EndpointError(f"ras://{host}:{port}: NCCL's service does not answer there")
            command(
                "SET FORMAT json"
            )  # an older NCCL answers that it does not know it, in one line too
            stream.write(b"VERBOSE STATUS\n")
            stream.flush()
            return _read_all(stream.read1, ANSWER_TIMEOUT_S)


def _shows_uneven_ranks(answer: bytes) -> bool:
    """Return True if the ranks of a communicator have launched other numbers of operations."""
    exhibit = Exhibit(name="ras.txt", data=answer)
    testimonies = (read(exhibit) for read in (nccl_ras_json.read_log, nccl_ras_text.read_log))
    reports = tuple(report for t in testimonies if t is not None for report in t.nccl)
    return any(True for _ in uneven_communicators(NcclStates(reports=reports)))
