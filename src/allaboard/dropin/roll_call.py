"""The roll call alone: who is here, before any framework is asked."""

from __future__ import annotations

import json
import os
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from allaboard.dropin.joining import joining


class Roster(NamedTuple):
    """All ``size`` members are here; this one is ``rank``, task ``number`` of ``job``. ``place`` is
    where they met ("" with a cluster spec), ``seconds`` how long it took."""

    rank: int
    size: int
    job: str
    number: int
    place: str
    seconds: float


def roll_call(
    timeout: float = 60.0,
    *,
    cluster: Mapping[str, Sequence[str]] | None = None,
    task_type: str = "worker",
    task_id: int = 0,
    coordinator: str = "",
) -> Roster:
    """Wait until every member of the job has called it, at the address where the job itself will meet.

    Args:
        timeout: seconds to wait for members that do not come.
        cluster: job to addresses, as tf.train.ClusterSpec takes it; else the environment says who takes
            part (TF_CONFIG, RANK and MASTER_ADDR, Slurm's, Open MPI's, JAX's variables).
        task_type: the job of this process; with ``cluster`` only.
        task_id: its index; with ``cluster`` only.
        coordinator: HOST:PORT where all meet, if the environment does not say; or
            etcd://HOST:PORT[,HOST:PORT…]/PREFIX (etcds:// for TLS), if any host may go away. The default is
            ALLABOARD_COORDINATOR.

    Raises:
        RollCallError: a member is missing, there twice, or cannot be reached; on every member.
        ValueError: nothing says which member of how many this is, or the coordinator, the secret or the
            certificates that the environment names cannot be used.
    """
    from allaboard.cluster.transport.etcd_url import is_etcd_url
    from allaboard.options.option_values import check_coordinator as checked
    from allaboard.options.option_values import read_secret, read_tls_files
    from allaboard.options.usage_error import UsageError
    from allaboard.preflight.task import UnstatedTaskError, task_of_environment
    from allaboard.preflight.task import task_declaration as declare

    variables = dict(os.environ)
    if cluster is not None:
        own_task = {"type": task_type, "index": task_id}
        all_tasks = {job: list(tasks) for job, tasks in cluster.items()}
        variables["TF_CONFIG"] = json.dumps({"cluster": all_tasks, "task": own_task})
    try:
        read_secret(None)
        meeting = checked(coordinator, read_tls_files(Namespace()), "coordinator=")
        in_etcd = is_etcd_url(meeting)
        framework = "tensorflow" if cluster is not None else ""
        task = task_of_environment(variables, framework, "" if in_etcd else coordinator, in_etcd)
    except (UsageError, UnstatedTaskError) as error:
        raise ValueError(str(error)) from None
    started_at = time.monotonic()
    with joining({**declare(task), "call": "roll_call"}, timeout, meeting if in_etcd else ""):
        pass
    return Roster(
        task.rank,
        task.size,
        task.job,
        task.task_index,
        task.meeting_address,
        round(time.monotonic() - started_at, 3),
    )
