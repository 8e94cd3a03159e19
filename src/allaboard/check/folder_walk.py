"""The files of a folder that `check` can judge, as a linter finds them.

Every name that says what a file is counts (``*.yaml``, ``*.py``, ``hostfile``); files without a suffix
count if they begin as a script does. Prose, data and binary files are passed over in silence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from allaboard.check.file_types import is_hostfile_name, kind_of_suffix

SKIPPED_FOLDERS = frozenset(
    ["node_modules", "__pycache__", "site-packages", "venv", "env", "build", "dist"]
)
"""Folders of others' files and of what was built; hidden folders are skipped too."""
READ_HIDDEN_FOLDERS = frozenset([".github"])
"""Hidden folders that are read: workflows start jobs."""
MAX_FILES = 20_000
"""Files of one folder that are judged."""
MAX_FILE_NBYTES = 16 << 20
"""Larger files are passed over: no configuration is that large."""
SNIFFED_NBYTES = 4096
_SCRIPT_START = re.compile(
    rb"#!\S*[ /](?:ba|da|z|k)?sh\b|#!.*python|(?s:.*)^#SBATCH\b", re.MULTILINE
)


def expand_folders(paths: Iterable[str]) -> tuple[list[str], frozenset[str]]:
    """Return the paths with each folder replaced by its files, and those files: the user did not name them.

    Raises:
        OSError: a folder may not be read.
    """
    expanded: dict[str, str] = {}
    walked = set()
    for path in paths:
        if path == "-" or not Path(path).is_dir():
            expanded.setdefault(os.path.normpath(path), path)
            continue
        os.scandir(path).close()  # raises where os.walk would find nothing
        for count, file in enumerate(walk_folder(path)):
            if count >= MAX_FILES:
                break
            if file not in expanded:
                expanded[file] = file
                walked.add(file)
    return list(expanded.values()), frozenset(walked - {p for p in paths if not Path(p).is_dir()})


def walk_folder(folder: str) -> Iterator[str]:
    """Yield the files below a folder that may be configuration, folder by folder, sorted by name."""
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_skipped(path, name))
        for name in sorted(names):
            file = os.path.normpath(os.path.join(path, name))  # noqa: PTH118 - as the user would write it
            if _may_be_configuration(file, name):
                yield file


def _is_skipped(parent: str, name: str) -> bool:
    """Return True for hidden folders, others' packages, and virtual environments of any name."""
    if name.startswith("."):
        return name not in READ_HIDDEN_FOLDERS
    return name in SKIPPED_FOLDERS or Path(parent, name, "pyvenv.cfg").exists()


def _may_be_configuration(file: str, name: str) -> bool:
    named = kind_of_suffix(name) != "" or is_hostfile_name(name)
    if not named and "." in name:
        return False
    try:
        # A FIFO without a writer would block the open for ever.
        if not Path(file).is_file() or Path(file).stat().st_size > MAX_FILE_NBYTES:
            return False
        with open(file, "rb") as opened:  # noqa: PTH123
            start = opened.read(SNIFFED_NBYTES)
    except OSError:
        return named  # reading it will say why
    if not start.strip() or b"\0" in start:
        return False
    return named or _SCRIPT_START.match(start) is not None
