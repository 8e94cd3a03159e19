"""Files of a run that nobody else may read, nor lead elsewhere.

A run folder may lie where others can write. So a name is never trusted: no link is followed, a new file is
made with O_EXCL and mode 0600, and a whole file takes its name by rename(2), relative to a handle of its
folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
OTHERS_CAN_WRITE = stat.S_IWGRP | stat.S_IWOTH
"""Bits of a mode with which others than the owner may write."""


def open_folder(path: Path | str, parent: int | None = None, *, follow: bool = False) -> int:
    """Return a handle of a folder; ``follow`` a link only if the user named it. Raises OSError."""
    return os.open(path, _FOLDER_FLAGS | (0 if follow else os.O_NOFOLLOW), dir_fd=parent)


def open_to_append(name: Path | str, folder: int | None = None) -> int:
    """Return a descriptor that appends to a file of this folder; without ``folder``, ``name`` is a path.

    Raises OSError, also if the name is a link, no regular file, a second name of another file, or the file of
    another user than the one to whom the folder belongs.
    """
    if folder is None:
        path = Path(name)
        handle = open_folder(path.parent)
        try:
            return open_to_append(path.name, handle)
        finally:
            os.close(handle)
    flags = _FILE_FLAGS | os.O_WRONLY | os.O_APPEND
    try:
        return os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    except FileExistsError:
        file = os.open(name, flags, dir_fd=folder)
    status = os.fstat(file)
    owners = (
        os.geteuid(),
        os.fstat(folder).st_uid,
    )  # a network file system may give root's files to nobody
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or status.st_uid not in owners:
        os.close(file)
        raise OSError(errno.EPERM, "not a file of this run", str(name))
    with contextlib.suppress(OSError):
        os.fchmod(file, 0o600)
    return file


def create_file(name: str, data: bytes, folder: int) -> None:
    """Write a new file of this folder. Raises OSError, FileExistsError if the name is taken in any way."""
    file = os.open(name, _FILE_FLAGS | os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    with os.fdopen(file, "wb") as opened:
        opened.write(data)


def replace_file(name: str, data: bytes, folder: int, mode: int = 0o600) -> None:
    """Give this name to a new file with this content: a reader sees the file before or this one, whole.

    Raises OSError; then the file that had the name is as it was.
    """
    # Unguessable is not needed: whoever makes it first only makes this fail.
    partial = f".{name[:200]}.{os.getpid()}"
    with contextlib.suppress(OSError):
        os.unlink(partial, dir_fd=folder)
    try:
        create_file(partial, data, folder)
        if mode != 0o600:
            os.chmod(partial, mode, dir_fd=folder)
        os.rename(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(partial, dir_fd=folder)
        raise


def write_named_file(path: Path, data: bytes) -> None:
    """Write a file that the user named.

    A regular file is replaced whole and keeps its mode; a new one has mode 0600; a device or a pipe is
    written to. Raises OSError.
    """
    target = Path(os.path.realpath(path))  # the user's own link
    try:
        status = target.stat()
    except FileNotFoundError:
        status = None
    if status is not None and not stat.S_ISREG(status.st_mode):
        target.write_bytes(data)
        return
    mode = stat.S_IMODE(status.st_mode) if status is not None else 0o600
    folder = open_folder(target.parent, follow=True)
    try:
        replace_file(target.name, data, folder, mode)
    except PermissionError:
        # A file that may be written in a folder that may not.
        if status is None:
            raise
        target.write_bytes(data)
    finally:
        os.close(folder)
