"""The folder of a run, which holds its logs, journal and report.

It often lies where others can write: in a shared project, or in the temporary folder. So it is made relative
to handles of its parents, each checked once it is open, and no link is followed.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path

from allaboard.errors import AllaboardError
from allaboard.launch.private_files import (
    OTHERS_CAN_WRITE,
    create_file,
    open_folder,
    open_to_append,
)
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
    working = working_folder()
    if requested is not None:
        return _take_requested_folder(requested)
    reasons: list[str] = []
    for is_temporary in (False, True):
        try:
            base = _temporary_base() if is_temporary else working / ".allaboard"
            make_folder_below(base, job_id)
        except ForeignFolderError as error:
            reasons.append(str(error))
            continue
        except OSError:
            continue
        if reasons:
            sys.stderr.write(f"allaboard: {reasons[0]}; this run is recorded in {base / job_id}\n")
        return base / job_id
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return raise_usage_error(
        f"no folder can be made for the run, here or in the temporary folder{why}; give --run-dir"
    )


def _temporary_base() -> Path:
    """Return this user's folder of runs in the temporary folder. Raises OSError if there is none."""
    import tempfile

    return Path(tempfile.gettempdir()) / f"allaboard-{os.getuid()}"


class ForeignFolderError(AllaboardError):
    """A folder in which others could lead our files elsewhere; the message says which, and why."""


def make_folder_below(base: Path, job_id: str) -> None:
    """Make the run's folder in ``base``, which is made too. Raises OSError or ForeignFolderError."""
    with contextlib.suppress(FileExistsError):
        base.mkdir(mode=0o700)
    if base.is_symlink():
        raise ForeignFolderError(f"{base} is a link")
    parent = open_folder(base)
    try:
        status = os.fstat(parent)
        if status.st_uid != os.geteuid():
            raise ForeignFolderError(f"{base} belongs to another user (uid {status.st_uid})")
        if status.st_mode & OTHERS_CAN_WRITE:
            os.fchmod(parent, 0o700)
            if os.fstat(parent).st_mode & OTHERS_CAN_WRITE:
                raise ForeignFolderError(f"{base} can be written to by others")
        with contextlib.suppress(FileExistsError):
            create_file(".gitignore", b"*\n", parent)
        os.mkdir(job_id, 0o700, dir_fd=parent)
        run = open_folder(job_id, parent)
        try:
            os.mkdir("logs", 0o700, dir_fd=run)
        finally:
            os.close(run)
    finally:
        os.close(parent)


def _take_requested_folder(requested: Path) -> Path:
    """Make the folder that the user named, if it is missing, and what a run needs in it."""
    folder = requested.absolute()
    try:
        for parent in (*reversed(folder.parents), folder):
            if not parent.exists():
                parent.mkdir(mode=0o700, exist_ok=True)
        run = open_folder(folder, follow=True)
        try:
            with contextlib.suppress(FileExistsError):
                os.mkdir("logs", 0o700, dir_fd=run)
            os.close(open_folder("logs", run))
            os.close(open_to_append("journal.jsonl", run))
            warning = _shared_folder_warning(requested, os.fstat(run))
        finally:
            os.close(run)
    except OSError as error:
        raise_usage_error(
            f"--run-dir {requested}: {error.strerror}; name a folder that you can write to"
        )
    if warning:
        sys.stderr.write(f"allaboard: {warning}\n")
    # A link that the user named is taken once, here; from now on none is followed.
    return folder.resolve() if folder.is_symlink() else folder


def _shared_folder_warning(requested: Path, status: os.stat_result) -> str:
    """Return who else can remove or replace the files of this run; "" if nobody can."""
    if status.st_uid not in (os.geteuid(), 0):
        who = f"its owner (uid {status.st_uid})"
    elif status.st_mode & stat.S_ISVTX or not status.st_mode & OTHERS_CAN_WRITE:
        return ""
    else:
        who = "every user" if status.st_mode & stat.S_IWOTH else f"group {status.st_gid}"
    return (
        f"--run-dir {requested}: {who} can remove or replace the files of this run, though not read them; "
        "to keep them out, name a folder of your own"
    )
