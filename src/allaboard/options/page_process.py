"""Starts the page server of `run --web` as a process of its own, so that nothing it does reaches the job."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.launch.sidecar_process import FOREIGN_VARIABLES
from allaboard.options.web_options import INHERITED, PagePort

if TYPE_CHECKING:
    from allaboard.cluster.transport.tls import TlsFiles

LOG_NAME = "page.log"
"""File of the run folder with what the page server has to say."""

_processes: list[subprocess.Popen[bytes]] = []
"""The servers that were started. Each ends by itself, shortly after its run."""


def start_page_process(page: PagePort, run_dir: Path, tls: TlsFiles | None) -> str:
    """Start the server, hand the socket over to it, and return what went wrong, or ""."""
    number = page.listener.fileno()
    command = [sys.executable, "-P", "-m", "allaboard", "watch", f"--web={INHERITED}{number}"]
    if page.is_tls and tls is not None:
        command += ["--tls-cert", str(tls.cert), "--tls-key", str(tls.key)]
        command += ["--tls-ca", str(tls.ca)]
    environment = {k: v for k, v in os.environ.items() if k not in FOREIGN_VARIABLES}
    try:
        with (run_dir / LOG_NAME).open("wb") as log:
            process = subprocess.Popen(
                [*command, str(run_dir)],
                pass_fds=[number],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                # Ctrl-C is for the job; the page shows what it does.
                start_new_session=True,
                env=environment,
            )
        assert process.stdin is not None
        # Not in the command line, which every user of the machine can read.
        process.stdin.write(page.token.encode() + b"\n")
        process.stdin.close()
    except OSError as error:
        return f"the page cannot be served: {error.strerror or error}"
    finally:
        page.listener.close()
    _processes.append(process)
    return ""
