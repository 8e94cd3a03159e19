"""The environments of the workers: their places in the job, and the way to the probe."""

from __future__ import annotations

import importlib
import os
import socket
from pathlib import Path
from typing import Any

from allaboard.hosts.gpu.gpu_devices import gpu_share_of_worker
from allaboard.launch.launch_plan import LaunchPlan
from allaboard.launch.port_reservation import reserve_ports
from allaboard.probe import frameworks

RECOVERY_WAIT_S = "1"
"""Seconds (as text) between two checks of a TensorFlow 1 worker whether the variables are back."""
PROBE = Path(frameworks.__file__).parents[1]


def worker_environments(
    plan: LaunchPlan, boxes: Path
) -> tuple[list[dict[str, str]], list[socket.socket]]:
    """Return what each worker's environment gets beyond ours, and the ports that are held for them."""
    reserved: list[socket.socket] = []
    environments: list[dict[str, str]] = [{} for _ in range(plan.size)]
    if plan.tasks:
        own_ports, environments = _with_roles(plan)
        reserved += own_ports
    elif plan.is_size_given:
        for framework in known_frameworks():
            own_ports = reserve_ports(framework.ports(plan.size))
            reserved += own_ports
            numbers = [s.getsockname()[1] for s in own_ports]
            for index, environment in enumerate(environments):
                environment.update(framework.environment(index, plan.size, numbers))
                devices = gpu_share_of_worker(os.environ, index, plan.size)
                if devices is not None:
                    visible_before = os.environ.get("CUDA_VISIBLE_DEVICES")
                    devices_text = (
                        devices if visible_before is None else f"{devices}|{visible_before}"
                    )
                    environment["ALLABOARD_DEVICES"] = devices_text
    if plan.is_size_given and plan.size > 1 and "OMP_NUM_THREADS" not in os.environ:
        for environment in environments:
            environment["OMP_NUM_THREADS"] = "1"  # as torchrun does
    if plan.is_size_given or plan.round:
        for environment in environments:
            environment["TORCHELASTIC_RESTART_COUNT"] = str(plan.round)
    if plan.standby_ranks:
        for environment in environments:
            environment["ALLABOARD_STANDBY"] = "1"
    if plan.tasks_may_return:
        for environment in environments:
            environment["ALLABOARD_RECOVERY_WAIT"] = RECOVERY_WAIT_S
            if plan.snapshot_interval_s:
                environment["ALLABOARD_SNAPSHOT"] = f"{plan.snapshot_interval_s:g}"
    path = os.pathsep.join(p for p in (str(PROBE / "start"), os.environ.get("PYTHONPATH")) if p)
    for index, environment in enumerate(environments):
        environment.update(plan.user_variables)
        # The probe's folder stays in front: Python loads the first sitecustomize that it finds.
        if "PYTHONPATH" in plan.user_variables:
            path = os.pathsep.join((str(PROBE / "start"), plan.user_variables["PYTHONPATH"]))
        environment.update(
            ALLABOARD_JOB=plan.job,
            ALLABOARD_BOX=str(boxes),
            ALLABOARD_WORKER=str(index),
            ALLABOARD_GATE=plan.gate,
            ALLABOARD_ROUND=str(plan.round),
            PYTHONPATH=path,
        )
    return environments, reserved


def _with_roles(plan: LaunchPlan) -> tuple[list[socket.socket], list[dict[str, str]]]:
    """Return ports and environments of a job with parameter servers; only a framework that has such
    roles is given them."""
    reserved: list[socket.socket] = []
    environments: list[dict[str, str]] = [{} for _ in plan.tasks]
    for framework in known_frameworks():
        environment_of_task = getattr(framework, "environment_of_task", None)
        if environment_of_task is not None:
            own_ports = reserve_ports(plan.size)
            reserved += own_ports
            numbers = [s.getsockname()[1] for s in own_ports]
            for number, environment in enumerate(environments):
                environment.update(environment_of_task(plan.tasks, number, numbers))
    return reserved, environments


def known_frameworks() -> list[Any]:
    """Return what the probe knows of each framework: what its members read from their environment."""
    # Not by glob, which finds nothing in a folder that cannot be read: the workers would have no ranks.
    files = (p for p in (PROBE / "frameworks").iterdir() if p.suffix == ".py")
    names = sorted(p.stem for p in files if not p.stem.startswith("_"))
    return [importlib.import_module(f"{frameworks.__name__}.{name}") for name in names]
