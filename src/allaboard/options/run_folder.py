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


def run_dir(wanted: Path | None, job: str) -> Path:
    """The folder of this run: what the user named, else .allaboard/JOB here, else a temporary one."""
    import tempfile

    here = working_folder()
    if wanted is not None:
        folder = wanted.absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (folder / "logs").mkdir(exist_ok=True, mode=0o700)
            (folder / "journal.jsonl").open("ab").close()
        except OSError as error:
            raise_usage_error(
                f"--run-dir {wanted}: {error.strerror}; name a folder that you may write to"
            )
        return folder
    for base in (
        here / ".allaboard",
        Path(tempfile.gettempdir()) / f"allaboard-{os.getuid()}",
    ):
        try:
            base.mkdir(exist_ok=True, mode=0o700)
            ignore = base / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            (base / job).mkdir(mode=0o700)
            (base / job / "logs").mkdir(mode=0o700)
        except OSError:
            continue
        return base / job
    return raise_usage_error(
        "no folder for the run: neither here nor in the temporary folder; give --run-dir"
    )
