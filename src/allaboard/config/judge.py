"""Runs the rules that read configuration over what was gathered."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from allaboard.catalogue import Entry, families
from allaboard.config.gather import Gathered
from allaboard.diagnose import diagnose, stamp
from allaboard.facts import Finding, Pasted, ScriptFacts, Severity

_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


def judge(
    gathered: Gathered, select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()
) -> list[Finding]:
    """The findings, by file and place, each once; ``select`` and ``ignore`` are code prefixes.

    Raises:
        ValueError: a prefix that no rule's code begins with.
    """
    entries = [e for e in _entries(gathered) if _wanted(e.code, select, ignore)]
    for prefix in (*select, *ignore):
        if not any(code.startswith(prefix) for code in _codes()):
            raise ValueError(f"no rule's code begins with {prefix!r}; `allaboard rules` lists all")
    found: dict[tuple[object, ...], Finding] = {}
    for facts in gathered.facts():
        for entry, claim in diagnose(facts, entries):
            finding = _text(stamp(entry, claim))
            where = str(claim.where) if claim.where is not None else ""
            found.setdefault((finding.rule, where, finding.summary), finding)
    return sorted(found.values(), key=_place)


def _text(finding: Finding) -> Finding:
    """The finding without lone surrogates, as which Python holds bytes that are no text."""
    try:
        msgspec.json.encode(finding)
    except UnicodeEncodeError:
        return msgspec.convert(_visible(msgspec.to_builtins(finding)), Finding)
    return finding


def _visible(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _visible(item) for key, item in value.items()}
    return [_visible(item) for item in value] if isinstance(value, (list, tuple)) else value


def _entries(gathered: Gathered) -> Iterator[Entry]:
    """Only the families that have something to read: the others are not even imported."""
    wanted = ["cfg"]
    if any(isinstance(f, Pasted) for f in gathered.facts()):
        wanted.append("env")
    if any(isinstance(f, ScriptFacts) for f in gathered.facts()):
        wanted.append("code")
    yield from families(tuple(wanted)).entries


def _codes() -> list[str]:
    return [e.code for e in families(("cfg", "env", "code")).entries]


def _wanted(code: str, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    if select and not code.startswith(select):
        return False
    return not (ignore and code.startswith(ignore))


def _place(finding: Finding) -> tuple[str, int, int, int, str]:
    where = finding.where
    if where is None:
        return "", 0, 0, _ORDER[finding.severity], finding.rule
    return where.file, where.line, where.column, _ORDER[finding.severity], finding.rule
