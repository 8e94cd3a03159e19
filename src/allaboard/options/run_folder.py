"""Where logs, journal and report of a run go."""

from __future__ import annotations

import os
from pathlib import Path

from allaboard.options.usage_error import raise_usage_error


def working_folder() -> Path:
    """Where the workers run; refused where somebody has removed it."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return raise_usage_error(
            "the working folder has been removed; change to one that is there: cd DIR"
        )


def create_run_folder(requested: Path | None, job_id: str) -> Path:
    """The folder of this run: what the user named, else .allaboard/JOB here, else a temporary one."""
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
                f"--run-dir {requested}: {error.strerror}; name a folder that you may write to"
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
        "no folder for the run: neither here nor in the temporary folder; give --run-dir"
    )
