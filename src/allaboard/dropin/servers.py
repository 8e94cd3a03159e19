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
SERVE = ("worker", "ps")
AGAIN = 0.5
"""Seconds between two attempts."""


def await_servers(cluster: Mapping[str, object], timeout: float) -> None:
    """Returns once every worker and parameter server answers as a gRPC server.

    Raises RollCallError with what the last attempt met, after ``timeout`` s.
    """
    wanted = [
        (job, index, str(address))
        for job in SERVE
        for index, address in enumerate(_listed(cluster.get(job, ())))
    ]
    with ThreadPoolExecutor(1) as own:  # the caller's thread may have a loop already
        found = own.submit(asyncio.run, _all(wanted, time.monotonic() + timeout)).result()
    absent = [(task, met) for task, met in zip(wanted, found, strict=True) if not _up(met)]
    if absent:
        findings = [_finding(task, met, timeout) for task, met in absent]
        lines = [line for f in findings for line in finding_lines(f)]
        said = f"{len(absent)} of {len(wanted)} servers do not answer"
        raise RollCallError("\n".join([said, *lines]), findings)


def _listed(tasks: object) -> list[object]:
    if isinstance(tasks, Mapping):
        return list(tasks.values())
    return list(tasks) if isinstance(tasks, (list, tuple)) else []


async def _all(wanted: list[tuple[str, int, str]], until: float) -> list[ConnectResult]:
    return list(await asyncio.gather(*(_one(address, until) for _, _, address in wanted)))


async def _one(address: str, until: float) -> ConnectResult:
    while True:
        met = await connect_and_greet(address, speak=1.0)
        if _up(met) or time.monotonic() + AGAIN >= until:
            return met
        await asyncio.sleep(AGAIN)


def _up(met: ConnectResult) -> bool:
    return met.answer is Answer.GRPC


def _finding(task: tuple[str, int, str], met: ConnectResult, waited: float) -> Finding:
    job, index, address = task
    entry = load_rule(SERVER_MISSING)
    claim = Claim(
        summary=f"{job} {index} does not answer at {address}: {met.detail or met.answer}",
        who=(Who(job=job, index=index, host=Address.from_endpoint(address).host),),
        evidence=(
            Evidence(f"connect to {address}: {met.detail or met.answer}", f"for {waited:.0f} s"),
        ),
        fix=f"start {job} {index} on that host, and let it make its tf.distribute.Server "
        "before the chief",
    )
    return make_finding(entry, claim)
