"""The folder of a run, which holds its logs, journal and report."""

from __future__ import annotations

import os
from pathlib import Path

from allaboard.options.usage_error import raise_usage_error


def working_folder() -> Path:
    """Return the folder in which the workers run. Raises UsageError if it has been removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return raise_usage_error(
            "the working folder has been removed; change to one that exists: cd DIR"
        )


def create_run_folder(requested: Path | None, job_id: str) -> Path:
    """Create the folder of this run and return it: the requested one, else .allaboard/JOB, else one in the
    temporary folder.

    Raises:
        UsageError: no folder can be written to.
    """
    import tempfile

    working = working_folder()
    if requested is not None:
        folder = requested.absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (folder / "logs").mkdir(exist_ok=True, mode=0o700)
            (folder / "journal.jsonl").open("ab").close()
        except OSError as error:
            raise_usage_error(
                f"--run-dir {requested}: {error.strerror}; name a folder that you can write to"
            )
        return folder
    for base in (
        working / ".allaboard",
        Path(tempfile.gettempdir()) / f"allaboard-{os.getuid()}",
    ):
        try:
            base.mkdir(exist_ok=True, mode=0o700)
            ignore = base / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            (base / job_id).mkdir(mode=0o700)
            (base / job_id / "logs").mkdir(mode=0o700)
        except OSError:
            continue
        return base / job_id
    return raise_usage_error(
        "no folder can be made for the run, here or in the temporary folder; give --run-dir"
    )
