"""Jobs of several hosts, at one of which a call of the agent fails, and what must hold at all of them."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import NamedTuple

from failing_call_runs import INJECTOR, FailingCall, Outcome, read_log, violations
from free_ports import free_port
from host_runs import TRAINING, HostRun

BOUND_S = 12
"""The ``--timeout`` of the roll call (s)."""
LIMIT_S = 75.0
"""Seconds for one run on a busy machine."""


class HostsJob(NamedTuple):
    """A job that is run again and again."""

    size: int
    script: str = TRAINING
    steps: int = 10
    loses_leader: bool = False
    """The agent of rank 0 is killed once all train."""


JOBS = {
    "meets": HostsJob(2),
    # Without a barrier: the worker of the lost host ends with its agent, and would take the others along.
    "loses its leader": HostsJob(3, TRAINING.replace("    dist.barrier()\n", ""), 60, True),
}


def run_hosts(folder: Path, job: HostsJob, rank: int, call: FailingCall) -> list[Outcome]:
    """Run the job once in this new folder while this call of the agent of this rank fails; return what was
    seen at each host that was not lost."""
    port, log = free_port(), folder / "calls"
    hosts = []
    for each in range(job.size):
        settings = {"log": str(log), **call._asdict()}
        variables = {"FAILING_CALLS": json.dumps(settings)} if each == rank else {}
        variables["STEPS"] = str(job.steps)
        options = ("--timeout", str(BOUND_S), "--grace", "2")
        path = [INJECTOR] if each == rank else []
        hosts.append(HostRun(folder, each, job.size, port, options, variables, path, job.script))
    if job.loses_leader:
        _lose_leader(hosts)
    outcomes = []
    deadline = time.monotonic() + LIMIT_S
    for host in hosts[1:] if job.loses_leader else hosts:
        code = host.wait(max(1.0, deadline - time.monotonic()))
        places, has_failed = read_log(log, call)
        outcomes.append(
            Outcome(code, host.text, places, has_failed, host.done.exists(), host.left_behind(), 1)
        )
    if job.loses_leader:
        hosts[0].wait()
    return outcomes


def _lose_leader(hosts: list[HostRun]) -> None:
    deadline = time.monotonic() + LIMIT_S / 2
    while time.monotonic() < deadline and any(h.process.poll() is None for h in hosts):
        if all("begins" in host.text for host in hosts):
            time.sleep(0.5)  # the roster has come by then
            break
        time.sleep(0.05)
    hosts[0].process.send_signal(signal.SIGKILL)


def host_violations(outcomes: list[Outcome], call: FailingCall) -> list[str]:
    """Return what does not hold although it must, whatever failed."""
    wrong = [v for outcome in outcomes for v in violations(outcome)]
    if not call.is_lasting and any(outcome.code for outcome in outcomes):
        wrong.append("the job ended because a call failed once")
    return wrong
