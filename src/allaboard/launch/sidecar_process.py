"""Starts a face beside the job as a process of its own, so that nothing it does reaches the job."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from allaboard.launch.signals import user_signals_blocked

FOREIGN_VARIABLES = ("ALLABOARD", "PYTHONSTARTUP", "PYTHONINSPECT")
"""Variables that are meant for the workers, or for a person at a prompt."""


class Sidecar(NamedTuple):
    """A face that runs beside the job. It ends by itself, shortly after its run."""

    process: subprocess.Popen[bytes]
    """Its process."""
    notes: int
    """Descriptor from which its lines for people are read."""
    early_end: str = ""
    """What people are told if it ends before the run does."""
    last_words_s: float = 0.0
    """Seconds for which the end of `run` waits for it: it has something to send when the run has ended."""


def start_sidecar(
    module: str,
    settings: bytes,
    run_dir: Path,
    log_name: str,
    early_end: str = "",
    last_words_s: float = 0.0,
) -> Sidecar:
    """Start the module with the settings, which are one line, on its stdin. What it has to complain about
    goes into a file of the run folder.

    Raises OSError if the process cannot be started.
    """
    notes, write_end = os.pipe()
    environment = {k: v for k, v in os.environ.items() if k not in FOREIGN_VARIABLES}
    try:
        with _open_log(run_dir / log_name) as log, user_signals_blocked():
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(run_dir)],
                stdin=subprocess.PIPE,
                stdout=write_end,
                stderr=log,
                # Ctrl-C is for the job; the face reports what comes of it.
                start_new_session=True,
                env=environment,
            )
        assert process.stdin is not None
        # Not in the command line, which every user of the machine can read.
        process.stdin.write(settings + b"\n")
        process.stdin.close()
    except OSError:
        os.close(notes)
        raise
    finally:
        os.close(write_end)
    os.set_blocking(notes, False)
    return Sidecar(process, notes, early_end, last_words_s)


def _open_log(path: Path) -> IO[bytes]:
    try:
        return path.open("wb")
    except OSError:  # a full disk must not cost the face
        return open(os.devnull, "wb")  # noqa: PTH123


def await_last_words(sidecars: Sequence[Sidecar]) -> None:
    """Wait until those that have something to send after the run have ended, each for its own time."""
    started_at = time.monotonic()
    for sidecar in sidecars:
        left_s = started_at + sidecar.last_words_s - time.monotonic()
        if sidecar.last_words_s and left_s > 0:
            try:
                sidecar.process.wait(left_s)
            except subprocess.TimeoutExpired:
                pass
            except KeyboardInterrupt:  # whoever waits wants it to end
                return
