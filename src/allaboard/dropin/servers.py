"""Before a chief asks its servers: is each of them up? TensorFlow itself would ask for ever."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from allaboard.cluster.transport.connect_probe import ConnectResult, connect_and_greet
from allaboard.dropin.error import RollCallError
from allaboard.facts import Address, Answer, Claim, Evidence, Finding, Who
from allaboard.report.finding_text import finding_lines
from allaboard.rules.engine.catalogue import load_rule
from allaboard.rules.engine.evaluate import make_finding

SERVER_MISSING = "server-missing"
"""Name of the rule that reports a server which does not answer."""
SERVER_JOBS = ("worker", "ps")
RETRY_PERIOD_S = 0.5
"""Time between two attempts to connect to a server."""


def await_servers(cluster: Mapping[str, object], timeout: float) -> None:
    """Return once every worker and parameter server answers as a gRPC server.

    Raises:
        RollCallError: a server did not answer within ``timeout`` seconds; it says what the last attempt
            met.
    """
    servers = [
        (job, index, str(address))
        for job in SERVER_JOBS
        for index, address in enumerate(_addresses(cluster.get(job, ())))
    ]
    with ThreadPoolExecutor(1) as executor:  # the caller's thread may run an event loop already
        results = executor.submit(
            asyncio.run, _probe_all(servers, time.monotonic() + timeout)
        ).result()
    silent_servers = [
        (task, result) for task, result in zip(servers, results, strict=True) if not _is_up(result)
    ]
    if silent_servers:
        findings = [_finding(task, result, timeout) for task, result in silent_servers]
        lines = [line for f in findings for line in finding_lines(f)]
        headline = f"{len(silent_servers)} of {len(servers)} servers do not answer"
        raise RollCallError("\n".join([headline, *lines]), findings)


def _addresses(tasks: object) -> list[object]:
    if isinstance(tasks, Mapping):
        return list(tasks.values())
    return list(tasks) if isinstance(tasks, (list, tuple)) else []


async def _probe_all(servers: list[tuple[str, int, str]], deadline: float) -> list[ConnectResult]:
    return list(
        await asyncio.gather(*(_probe_until(address, deadline) for _, _, address in servers))
    )


async def _probe_until(address: str, deadline: float) -> ConnectResult:
    while True:
        result = await connect_and_greet(address, greeting_timeout_s=1.0)
        if _is_up(result) or time.monotonic() + RETRY_PERIOD_S >= deadline:
            return result
        await asyncio.sleep(RETRY_PERIOD_S)


def _is_up(result: ConnectResult) -> bool:
    return result.answer is Answer.GRPC


def _finding(task: tuple[str, int, str], result: ConnectResult, seconds_waited: float) -> Finding:
    job, index, address = task
    entry = load_rule(SERVER_MISSING)
    claim = Claim(
        summary=f"{job} {index} does not answer at {address}: {result.detail or result.answer}",
        who=(Who(job=job, index=index, host=Address.from_endpoint(address).host),),
        evidence=(
            Evidence(
                f"connect to {address}: {result.detail or result.answer}",
                f"for {seconds_waited:.0f} s",
            ),
        ),
        fix=f"start {job} {index} on that host, and let it make its tf.distribute.Server before the chief",
    )
    return make_finding(entry, claim)
