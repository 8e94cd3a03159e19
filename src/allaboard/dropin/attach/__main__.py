"""The agent of a process that somebody else started: ``python -m allaboard.dropin.attach SETTINGS``.

``probe.attach`` starts it, with its settings as JSON. It removes their common folder at its end.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from allaboard.agent.main import run_agent
from allaboard.agent.options import Options
from allaboard.configuration.launcher_context import LauncherContext, job_id, read_launcher_context
from allaboard.dropin.attach.attached_process import attach_to_process
from allaboard.launch.local_workers import new_job_id
from allaboard.options.option_values import check_coordinator, read_secret, read_tls_files
from allaboard.options.run_folder import ForeignFolderError, make_folder_below
from allaboard.options.usage_error import UsageError

REPORT_AFTER_S = 60.0
"""When absent members are reported, if the time limit is longer than that."""
INIT_MARGIN_S = 5.0
"""How much longer than its timeout the framework's own call may take: its own message comes first."""


def main(arguments: list[str]) -> int:
    """Watch the process until it ends or lets go, and return the exit code, which nobody reads."""
    settings = json.loads(arguments[0])
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    boxes = Path(settings["boxes"])
    timeout = settings["timeout"]
    try:
        job = new_job_id()
        run_dir = run_folder(boxes, settings["rank"], settings.get("run_dir", ""), job)
        launch = attach_to_process(
            settings["pid"], boxes, run_dir, job, list(settings["argv"]), settings["watch"]
        )
    except (ProcessLookupError, FileNotFoundError):
        return 0
    try:
        certificates = read_tls_files(argparse.Namespace())
        return run_agent(
            launch,
            Options(
                timeout=REPORT_AFTER_S if timeout is None else min(REPORT_AFTER_S, timeout),
                patience=0.0 if timeout is None else timeout,
                init_within=None if timeout is None else timeout + INIT_MARGIN_S,
                grace=2.0,
                joined=joined_job(settings["rank"], settings["place"]),
                strict=timeout is not None,
                secret=read_secret(None),
                tls=certificates,
                coordinator=check_coordinator(settings.get("coordinator", ""), certificates),
                attached=True,
            ),
        )
    except UsageError as error:
        sys.stderr.write(f"allaboard: no roll call: {error}\n")
        return 2
    finally:
        shutil.rmtree(boxes, ignore_errors=True)


def run_folder(boxes: Path, rank: int, base: str, job: str) -> Path:
    """Return the folder for what the agent notes: for rank 0, which leads and knows of all ranks, one below
    ``base``, which the user named; else one that goes with the black boxes."""
    if base and rank == 0:
        try:
            make_folder_below(Path(base), job)
        except (OSError, ForeignFolderError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            sys.stderr.write(
                f"allaboard: ALLABOARD_RUN_DIR={base}: {reason}; nothing is recorded\n"
            )
        else:
            return Path(base) / job
    return boxes / "run"


def joined_job(rank: int, address: str) -> LauncherContext:
    """Return the job that the process joins. What its call was given wins over what the environment
    says."""
    environment_job = read_launcher_context(os.environ)
    is_launcher_store = (
        environment_job is not None
        and environment_job.has_launcher_store
        and address == _master_endpoint()
    )
    return LauncherContext(
        job_id(os.environ), rank, "" if is_launcher_store else address, is_launcher_store
    )


def _master_endpoint() -> str:
    return f"{os.environ.get('MASTER_ADDR', '')}:{os.environ.get('MASTER_PORT', '')}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
