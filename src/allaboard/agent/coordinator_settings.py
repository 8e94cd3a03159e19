"""Translates the launch and the user's options into the settings of the job state."""

from __future__ import annotations

import os
import shlex
import sys
import time

import msgspec

from allaboard.agent.options import Options
from allaboard.configuration.batch_shell import read_batch_shell
from allaboard.configuration.batch_time_limit import read_time_limit
from allaboard.coordinator.settings import JobSettings
from allaboard.launch.local_workers import Launch
from allaboard.policy.end.end_policy import EndPolicy


def build_settings(launch: Launch, options: Options, restarted: int) -> JobSettings:
    """Return the settings of the job state. ``restarted`` counts the restarts before this attempt."""
    policy = end_policy(options)
    # The script says itself who is who, and what it starts is all that this agent sees.
    may_span_agents = launch.plan.gate == "local" and options.joined is None
    outside_step = read_batch_shell(os.environ)
    return JobSettings(
        launched=launch.plan.size,
        host=os.uname().nodename,
        tasks=launch.plan.tasks,
        restarts=options.restarts,
        restarts_used=restarted,
        wrapped=options.wrapped,
        joined=options.joined is not None,
        outside_step=outside_step,
        step_command=f"srun allaboard {shlex.join(sys.argv[1:])}" if outside_step else "",
        time_limit_at=read_time_limit(os.environ, time.time(), time.monotonic()),
        rank=options.joined.rank if options.joined is not None else -1,
        timeout=options.timeout,
        timeout_hard=options.timeout_hard,
        policy=policy,
        policy_among_agents=_among_agents(policy, options) if may_span_agents else None,
    )


def end_policy(options: Options) -> EndPolicy:
    """Return when these options allow the job to be ended."""
    return EndPolicy(
        only_observes=options.observe,
        stop_on_hang=options.stop_on_hang,
        hang_after=options.hang_after,
        stop_on_error=options.stop_on_error,
        patience=options.patience,
        init_within=options.init_within,
        start_bound=options.timeout if _bounded(options) else None,
        restarts=options.restarts.allowed,
        stopped_after=options.stopped_after,
        ends_survivors=_ends_survivors(options),
        ends_servers=not options.wrapped,
        only_reports=options.joined is not None and not options.strict,
    )


def _among_agents(policy: EndPolicy, options: Options) -> EndPolicy:
    """Return the policy for a job of which other agents, or nobody, started the other ranks: as for one whose
    launcher says so."""
    return msgspec.structs.replace(
        policy,
        only_reports=not options.strict,
        start_bound=options.timeout if options.strict else None,
        ends_survivors=options.restarts.allowed,
    )


def _ends_survivors(options: Options) -> bool:
    """Return True if the survivors of a failure are ended.

    On several hosts only if all of them are restarted together; else the framework or its launcher decides.
    """
    if options.joined is not None:
        return options.restarts.allowed
    return not options.wrapped


def _bounded(options: Options) -> bool:
    """Return True if the user gave a time by which a job on several hosts must have started."""
    rehearsed = options.stop_on_error or options.attached
    return options.joined is not None and options.strict and not rehearsed
