"""Finds every rule; the file's name is its code and name, its docstring the page."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec

from allaboard import rules
from allaboard.contracts import Rule
from allaboard.plugins import Broken, plugins


class Entry(msgspec.Struct, frozen=True):
    """One rule of the catalogue with what its file's name and docstring say."""

    code: str
    name: str
    page: str
    rule: Rule[Any]

    @property
    def title(self) -> str:
        """The first line of the page."""
        return self.page.partition("\n")[0].rstrip(".")


class Catalogue(msgspec.Struct, frozen=True):
    """All rules by code, and those that could not be loaded."""

    entries: tuple[Entry, ...]
    broken: tuple[Broken, ...]

    def find(self, code_or_name: str) -> Entry | None:
        """The rule with this code (any case) or name; None where there is none."""
        wanted = code_or_name.strip().lower()
        return next((e for e in self.entries if wanted in (e.code.lower(), e.name)), None)


TEXTS = ("cfg", "code", "dump", "log")
"""Families that read only what people and programs wrote: they never speak of a job that runs."""


@cache
def of_jobs() -> Catalogue:
    """The rules of this installation that may speak of a running job, and whatever others bring."""
    return _chosen(lambda name: not name.startswith(TEXTS))


def catalogue() -> Catalogue:
    """The rules of this installation, loaded once."""
    return families(())


@cache
def families(prefixes: tuple[str, ...]) -> Catalogue:
    """The rules whose file names begin with one of these, all where there is none.

    The files of other families are not even imported: a face that needs one family starts sooner.
    """
    return _chosen(lambda name: not prefixes or name.startswith(prefixes))


@cache
def rule_named(name: str) -> Entry:
    """Return the rule with this name, of which only the file is imported.

    Raises LookupError if there is none, or if its file cannot be loaded.
    """
    suffix = "_" + name.replace("-", "_")
    found = _chosen(lambda stem: stem.endswith(suffix))
    entry = found.find(name)
    if entry is None:
        raise LookupError(
            f"no rule is named {name!r}" + "".join(f": {b.why}" for b in found.broken)
        )
    return entry


def _chosen(wanted: Callable[[str], bool]) -> Catalogue:
    entries: list[Entry] = []
    broken: list[Broken] = []
    for plugin in plugins(rules, "RULE", Rule, wanted):
        if isinstance(plugin, Broken):
            broken.append(plugin)
            continue
        assert isinstance(plugin.value, Rule)
        code, _, name = plugin.stem.partition("_")
        page = (plugin.module.__doc__ or "").strip()
        entries.append(Entry(code.upper(), name.replace("_", "-"), page, plugin.value))
    return Catalogue(tuple(sorted(entries, key=lambda e: e.code)), tuple(broken))
