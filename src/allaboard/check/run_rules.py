"""Runs the rules that judge configuration over the facts that were gathered."""

from __future__ import annotations

import msgspec

from allaboard.check.collect import Gathered, broken_sources
from allaboard.facts import Finding, Pasted, ScriptFacts
from allaboard.rules.engine.catalogue import load_families
from allaboard.rules.engine.evaluate import make_finding, run_rules
from allaboard.rules.engine.relations import SEVERITY_ORDER


def judge_configuration(
    gathered: Gathered, select: tuple[str, ...] = (), ignore: tuple[str, ...] = ()
) -> list[Finding]:
    """Return the findings, by file and position, each once; ``select`` and ``ignore`` are prefixes of rule
    codes.

    Raises:
        ValueError: no rule's code begins with one of the prefixes.
    """
    entries = [
        e
        for e in load_families(_families(gathered)).entries
        if _is_selected(e.code, select, ignore)
    ]
    for prefix in (*select, *ignore):
        if not any(code.startswith(prefix) for code in _codes()):
            raise ValueError(f"no rule's code begins with {prefix!r}; `allaboard rules` lists all")
    findings_by_claim: dict[tuple[object, ...], Finding] = {}
    for facts in gathered.all_facts():
        for entry, claim in run_rules(facts, entries):
            finding = _printable(make_finding(entry, claim))
            where = str(claim.where) if claim.where is not None else ""
            findings_by_claim.setdefault((finding.rule, where, finding.summary), finding)
    return sorted(findings_by_claim.values(), key=_sort_key)


def unloaded_rules(gathered: Gathered) -> list[str]:
    """Return the rules and sources that could not be loaded, each with the reason: what they would have
    found is not known."""
    broken = (*load_families(_families(gathered)).broken, *broken_sources())
    return [f"{b.stem}: {b.why}" for b in broken]


def _printable(finding: Finding) -> Finding:
    """Return the finding without lone surrogates, which is how Python holds bytes that are no text."""
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


def _families(gathered: Gathered) -> tuple[str, ...]:
    """Return the families of rules that have something to read; the others are not even imported."""
    families = ["cfg"]
    if any(isinstance(f, Pasted) for f in gathered.all_facts()):
        families.append("env")
    if any(isinstance(f, ScriptFacts) for f in gathered.all_facts()):
        families.append("code")
    return tuple(families)


def _codes() -> list[str]:
    return [e.code for e in load_families(("cfg", "env", "code")).entries]


def _is_selected(code: str, select: tuple[str, ...], ignore: tuple[str, ...]) -> bool:
    if select and not code.startswith(select):
        return False
    return not (ignore and code.startswith(ignore))


def _sort_key(finding: Finding) -> tuple[str, int, int, int, str]:
    where = finding.where
    if where is None:
        return "", 0, 0, SEVERITY_ORDER[finding.severity], finding.rule
    return where.file, where.line, where.column, SEVERITY_ORDER[finding.severity], finding.rule
