"""Options that say what may be started again after a failure."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from allaboard.options.usage_error import raise_usage_error
from allaboard.policy.restart.restart_policy import RestartPolicy

if TYPE_CHECKING:
    from allaboard.configuration.launcher_context import LauncherContext

DEFAULT_STOPPED_AFTER_S = 30.0
"""How long a stopped worker is waited for, unless --stopped-after says another time."""


def choose_restart_policy(
    options: argparse.Namespace, joined: LauncherContext | None, trusted: bool
) -> RestartPolicy:
    """Return the restart policy.

    ``joined`` is the job of which a launcher started this process, or None; ``trusted`` is True if the
    agents of all hosts know each other by a secret or by certificates.

    Raises:
        UsageError: the options contradict each other.
    """
    if options.on_failure == "stop":
        for option, value in (
            ("--max-restarts", options.max_restarts),
            ("--backoff", options.backoff),
            ("--stopped-after", options.stopped_after),
            ("--standby", options.standby),
        ):
            if value is not None:
                raise_usage_error(f"{option} needs --on-failure restart")
        return RestartPolicy()
    if options.observe:
        raise_usage_error(
            "--observe neither ends nor starts anything; leave out --observe or --on-failure restart"
        )
    if joined is not None:
        _check_several_hosts(joined, trusted)
    backoff = RestartPolicy().backoff if options.backoff is None else options.backoff
    max_restarts = (
        RestartPolicy().max_restarts if options.max_restarts is None else options.max_restarts
    )
    return RestartPolicy(allowed=True, max_restarts=max_restarts, backoff=backoff)


def choose_standby_ranks(
    options: argparse.Namespace, workers: int, has_tasks: bool, is_command: bool
) -> int:
    """Return for how many workers of this host a process stands by.

    Raises:
        UsageError: the option does not fit the job.
    """
    count: int | None = options.standby
    if count is None:
        return 0
    if has_tasks:
        raise_usage_error(
            f"--standby {count} is for jobs whose workers all start again together; with --ps, "
            "--ps-standby on keeps a process ready"
        )
    if is_command:
        raise_usage_error(
            f"--standby {count} needs a Python script or -m MODULE; what a command after -- starts is not "
            "known. Leave --standby out, or leave out -- and the interpreter"
        )
    if count > workers:
        raise_usage_error(
            f"--standby {count}: only {workers} {'worker starts' if workers == 1 else 'workers start'} here, "
            f"and each can be replaced once a round; try --standby {workers}"
        )
    return count


def choose_warm(
    options: argparse.Namespace, workers: int, has_tasks: bool, is_command: bool
) -> bool:
    """Return True if this host's workers are forked from a process that imports for all of them; one worker
    alone has nothing to share.

    Raises:
        UsageError: the option does not fit the job.
    """
    if not options.warm:
        return False
    if has_tasks:
        raise_usage_error("--warm is for jobs without parameter servers; leave out --warm or --ps")
    if is_command:
        raise_usage_error(
            "--warm needs a Python script or -m MODULE; what a command after -- starts is not known. Leave "
            "--warm out, or leave out -- and the interpreter"
        )
    if options.standby is not None:
        raise_usage_error(
            "--warm keeps its process for the rounds after a failure too, in the memory of one import; leave "
            "out --standby"
        )
    return workers > 1


def _check_several_hosts(joined: LauncherContext, trusted: bool) -> None:
    """Raise UsageError unless the agents of several hosts may end and start each other's workers: that
    takes proof that they belong to the job."""
    if joined.has_launcher_store:
        raise_usage_error(
            "--on-failure restart: torchrun started this rank, and restarts all ranks itself; "
            "try: torchrun --max-restarts 3 ... --no-python allaboard run train.py"
        )
    if not trusted:
        raise_usage_error(
            "--on-failure restart on several hosts: the agents end and start each other's workers, so they "
            "must know each other; make a secret, openssl rand -hex 32 > job.secret, and give every host "
            "--secret-file job.secret (or ALLABOARD_SECRET, or --tls-key, --tls-cert and --tls-ca)"
        )
