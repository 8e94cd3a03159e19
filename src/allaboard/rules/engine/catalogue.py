"""Finds every rule: alone in a file that has its code and name, or in the table of its family."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from allaboard import rules
from allaboard.contracts import Rule
from allaboard.facts import Stage
from allaboard.plugins import Broken, plugins
from allaboard.rules.engine.families import STAGES, UNSTAGED, family_of

_CODE = re.compile(r"[a-z]+[0-9]")
"""How the name of a file begins that holds one rule; a family's file has no number in its name."""


class RuleEntry(msgspec.Struct, frozen=True):
    """A rule of the catalogue with its code, its name and its page."""

    code: str
    """Its code in upper case: ``HANG001``."""
    name: str
    """Its name, as people type it: ``port-taken``."""
    page: str
    """Its published page as Markdown."""
    rule: Rule[Any]
    """What it checks, and its examples."""

    @property
    def title(self) -> str:
        """The first line of the page."""
        return self.page.partition("\n")[0].rstrip(".")

    @property
    def stage(self) -> Stage:
        """The part of a job's life that it judges."""
        return self.rule.stage or STAGES.get(family_of(self.code), Stage.RUNTIME)

    @property
    def unstaged(self) -> str:
        """Why no drill can stage it; "" if one does."""
        return self.rule.unstaged or (
            "" if self.rule.drill else UNSTAGED.get(family_of(self.code), "")
        )


class Catalogue(msgspec.Struct, frozen=True):
    """The rules that were loaded."""

    entries: tuple[RuleEntry, ...]
    """The rules, in the order of their codes."""
    broken: tuple[Broken, ...]
    """Files that could not be loaded, each with the reason: their rules report nothing."""

    def find_rule(self, code_or_name: str) -> RuleEntry | None:
        """Return the rule with this code (in any case) or name, or None."""
        key = code_or_name.strip().lower()
        return next((e for e in self.entries if key in (e.code.lower(), e.name)), None)


TEXT_FAMILIES = ("cfg", "code", "dump", "hw", "log")
"""Families that read only what people and programs wrote: they never report on a running job."""


@cache
def load_job_rules() -> Catalogue:
    """Return the rules that may report on a running job, those of other packages included."""
    return _load_rules(
        lambda stem: not stem.startswith(TEXT_FAMILIES),
        lambda family: not family.startswith(TEXT_FAMILIES),
    )


def load_catalogue() -> Catalogue:
    """Return all rules of this installation; they are loaded once."""
    return load_families(())


@cache
def load_families(prefixes: tuple[str, ...]) -> Catalogue:
    """Return the rules whose code begins with one of these prefixes (in lower case); all without prefixes.

    Files of other families are not imported: a command that needs one family starts sooner.
    """
    return _load_rules(
        lambda stem: not prefixes or stem.startswith(prefixes),
        lambda family: (
            not prefixes or any(p.startswith(family) or family.startswith(p) for p in prefixes)
        ),
    )


@cache
def load_rule(name: str) -> RuleEntry:
    """Return the rule with this name, of which only the file is imported.

    Raises LookupError if there is none, or if its file cannot be loaded.
    """
    suffix = "_" + name.replace("-", "_")
    matching = _load_rules(lambda stem: stem.endswith(suffix), lambda family: True)
    entry = matching.find_rule(name)
    if entry is None:
        raise LookupError(
            f"no rule is named {name!r}" + "".join(f": {b.why}" for b in matching.broken)
        )
    return entry


def rule_pages(names: Mapping[str, str]) -> dict[str, str]:
    """Return the pages of these rules, each a code and its name, by code.

    Rules that this installation does not have are left out.
    """
    pages = {e.code: e.page for e in load_job_rules().entries if e.code in names}
    for code, name in names.items():
        if code not in pages:
            try:
                pages[code] = load_rule(name).page
            except LookupError:
                continue
    return pages


def _load_rules(
    is_wanted: Callable[[str], bool], may_hold_wanted: Callable[[str], bool]
) -> Catalogue:
    """Return the rules whose stem ``<code>_<name>`` ``is_wanted`` accepts, in the order of their codes.

    A file with a table of rules is imported only if ``may_hold_wanted`` accepts the letters of its family.
    """
    entries: list[RuleEntry] = []
    broken: list[Broken] = []

    def is_wanted_table(stem: str) -> bool:
        return not _CODE.match(stem) and may_hold_wanted(stem.partition("_")[0])

    def is_wanted_rule(stem: str) -> bool:
        return _CODE.match(stem) is not None and is_wanted(stem)

    for plugin in plugins(rules, "RULE", Rule, is_wanted_rule):
        if isinstance(plugin, Broken):
            broken.append(plugin)
            continue
        assert isinstance(plugin.value, Rule)
        entries.append(_entry(plugin.stem, plugin.value, plugin.module.__doc__ or ""))
    for plugin in plugins(rules, "RULES", dict, is_wanted_table):
        if isinstance(plugin, Broken):
            broken.append(plugin)
            continue
        assert isinstance(plugin.value, dict)
        for stem, rule in plugin.value.items():
            if not isinstance(rule, Rule):
                broken.append(Broken(plugin.stem, f"{stem} is no Rule"))
            elif is_wanted(stem):
                entries.append(_entry(stem, rule, rule.page))
    return Catalogue(tuple(sorted(entries, key=lambda e: e.code)), tuple(broken))


def _entry(stem: str, rule: Rule[Any], page: str) -> RuleEntry:
    code, _, name = stem.partition("_")
    return RuleEntry(code.upper(), name.replace("_", "-"), page.strip(), rule)
