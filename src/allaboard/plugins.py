"""Loads every file of a plug-in room. A plug-in that fails to load is reported, not fatal."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import TypeVar

import msgspec

T = TypeVar("T")
_GROUP = b"[allaboard."
"""How the section of a package's entry points begins that has plug-ins for one of our rooms."""


class Plugin(msgspec.Struct, frozen=True):
    """One loaded plug-in: the file's stem, its module, and the object it ends in."""

    stem: str
    module: ModuleType
    value: object


class Broken(msgspec.Struct, frozen=True):
    """A plug-in that could not be loaded, and why."""

    stem: str
    why: str


def plugins(
    room: ModuleType, attribute: str, kind: type, wanted: Callable[[str], bool] = lambda name: True
) -> Iterator[Plugin | Broken]:
    """Every file of ``room`` (a package), then every entry point of the group named after it.

    A file must end in ``attribute``, an instance of ``kind``. Only plug-ins whose names are
    ``wanted``.
    """
    for name in _files(room):
        if wanted(name):
            yield _load(f"{room.__name__}.{name}", name, attribute, kind)
    if not _others():
        return
    from importlib.metadata import entry_points

    for entry in entry_points(group=room.__name__):
        if not wanted(entry.name):
            continue
        yield _load(entry.module, entry.name, attribute, kind)


def _files(room: ModuleType) -> list[str]:
    """The modules of a room; by hand, since pkgutil takes longer to load than to look."""
    names = [name for folder in room.__path__ for name in os.listdir(folder)]  # noqa: PTH208
    stems = sorted(name.removesuffix(".py") for name in names if name.endswith(".py"))
    return [stem for stem in stems if stem != "__init__"]


@cache
def _others() -> bool:
    """Whether any installed package brings plug-ins: looked for by hand, since importlib.metadata takes
    longer to import than all of `allaboard check`."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - hundreds of packages at every start
        except OSError:
            continue
        for name in names:
            if not name.endswith((".dist-info", ".egg-info")):
                continue
            try:
                with open(f"{folder or '.'}/{name}/entry_points.txt", "rb") as file:  # noqa: PTH123
                    if _GROUP in file.read():
                        return True
            except OSError:
                continue
    return False


def tables_by_name(room: ModuleType, attribute: str, kind: type[T]) -> dict[str, T]:
    """Merge the tables of a plug-in room: each file ends in ``attribute``, a dict of name to ``kind``.

    Raises TypeError if a file has no such table, a row is of another type, or two rows share a name.
    """
    rows: dict[str, T] = {}
    for plugin in plugins(room, attribute, dict):
        if isinstance(plugin, Broken):
            raise TypeError(plugin.why)
        assert isinstance(plugin.value, dict)
        for name, row in plugin.value.items():
            if not isinstance(row, kind) or name in rows:
                raise TypeError(f"{plugin.stem}: {name} is no {kind.__name__}, or there twice")
            rows[name] = row
    return rows


def _load(module_name: str, stem: str, attribute: str, kind: type) -> Plugin | Broken:
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        return Broken(stem, f"{type(error).__name__}: {error}")
    value = getattr(module, attribute, None)
    if not isinstance(value, kind):
        return Broken(stem, f"{module_name} must end with {attribute} = {kind.__name__}(...)")
    return Plugin(stem, module, value)
