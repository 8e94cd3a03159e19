"""The agent of a process that somebody else started: ``python -m allaboard.dropin.attach TOLD``.

``probe.attach`` starts it, with what it is to know as JSON. It removes their common folder at its end.
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
from allaboard.configuration.launcher_context import Described, described, job_id
from allaboard.dropin.attach.attached_process import attach
from allaboard.launch.local_workers import new_job_id
from allaboard.options.option_values import coordinator, read_secret, read_tls_files
from allaboard.options.usage_error import UsageError

TOLD_AFTER = 60.0
"""Seconds after which it is told that somebody is absent, where the bound is longer."""
MARGIN = 5.0
"""Seconds more than its timeout that the framework's own call gets: its own message comes first."""


def main(arguments: list[str]) -> int:
    """Watches until the process ends or lets go; the code means nothing to anybody."""
    told = json.loads(arguments[0])
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    boxes = Path(told["boxes"])
    timeout = told["timeout"]
    try:
        launch = attach(told["pid"], boxes, new_job_id(), list(told["argv"]), told["watch"])
    except (ProcessLookupError, FileNotFoundError):
        return 0
    try:
        certificates = read_tls_files(argparse.Namespace())
        return run_agent(
            launch,
            Options(
                timeout=TOLD_AFTER if timeout is None else min(TOLD_AFTER, timeout),
                patience=0.0 if timeout is None else timeout,
                init_within=None if timeout is None else timeout + MARGIN,
                grace=2.0,
                joined=joined(told["rank"], told["place"]),
                strict=timeout is not None,
                secret=read_secret(None),
                tls=certificates,
                coordinator=coordinator(told.get("coordinator", ""), certificates),
                attached=True,
            ),
        )
    except UsageError as error:
        sys.stderr.write(f"allaboard: no roll call: {error}\n")
        return 2
    finally:
        shutil.rmtree(boxes, ignore_errors=True)


def joined(rank: int, place: str) -> Described:
    """What the call was told wins over what the environment says."""
    around = described(os.environ)
    kept = around is not None and around.kept and place == _master()
    return Described(job_id(os.environ), rank, "" if kept else place, kept)


def _master() -> str:
    return f"{os.environ.get('MASTER_ADDR', '')}:{os.environ.get('MASTER_PORT', '')}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
