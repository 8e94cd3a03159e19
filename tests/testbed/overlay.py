"""What one host has installed instead of what the others have: a package that is found first, in a
folder of that host's own."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from testbed import Bed

PLACE = "/run/bed/site"
VERSIONS = {"torch": "__version__ = '{0}'\n", "numpy": 'version = "{0}"\n__version__ = version\n'}


def first(environment: dict[str, str]) -> dict[str, str]:
    """The environment in which it is found first."""
    others = environment.get("PYTHONPATH")
    return {**environment, "PYTHONPATH": os.pathsep.join((PLACE, others)) if others else PLACE}


def broken(bed: Bed, host: str, package: str) -> None:
    """A package whose import fails, as it does where a shared library is missing."""
    folder = _folder(bed, host, package)
    (folder / "__init__.py").write_text(
        "raise ImportError('libcudart.so.12: cannot open shared object file')\n"
    )


def other_version(bed: Bed, host: str, package: str, version: str) -> None:
    """The real package, file by file, but for what it says of its version."""
    folder = _folder(bed, host, package)
    found = importlib.util.find_spec(package)
    assert found is not None and found.origin is not None
    for entry in Path(found.origin).parent.iterdir():
        if entry.name not in ("version.py", "__pycache__"):
            (folder / entry.name).symlink_to(entry)
    old = (Path(found.origin).parent / "version.py").read_text()
    (folder / "version.py").write_text(old + VERSIONS[package].format(version))


def _folder(bed: Bed, host: str, package: str) -> Path:
    folder = bed.path(host, f"{PLACE}/{package}")
    folder.mkdir(parents=True)
    return folder
