"""What `check` found, as a linter prints it: at most three lines a finding; and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.facts import Finding

SCHEMA_VERSION = 1


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """What `check --format json` prints. The published JSON Schema is generated from this type.

    ``subjects`` are what was judged: ``environment``, or the files, and the roles of manifests.
    """

    schema: int = SCHEMA_VERSION
    allaboard: str
    subjects: tuple[str, ...]
    findings: tuple[Finding, ...]


def as_json(findings: Sequence[Finding], subjects: Sequence[str]) -> str:
    """A CheckReport, indented."""
    from allaboard import __version__

    report = CheckReport(allaboard=__version__, subjects=tuple(subjects), findings=tuple(findings))
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"


def text(
    findings: Sequence[Finding],
    subjects: Sequence[str],
    *,
    nothing: bool = False,
    fixes: bool = False,
    verbose: bool = False,
) -> str:
    """Findings as lines, and a last line that says what was judged."""
    lines = [line for f in findings for line in _finding(f, fixes, verbose)]
    lines.append(_total(findings, subjects, nothing))
    return "".join(f"{line}\n" for line in lines)


def _finding(finding: Finding, fixes: bool, verbose: bool) -> list[str]:
    place = f"{finding.where}: " if finding.where is not None else ""
    likely = "" if finding.certainty == "certain" else f" ({finding.certainty})"
    head = f"{place}{finding.rule} {finding.severity}{likely}: {finding.summary}"
    lines = [printable(head)]
    shown = finding.evidence if verbose else finding.evidence[:3]
    if verbose:
        lines += [printable(f"    because: {e}") for e in shown]
        lines += [printable(f"    who: {', '.join(map(str, finding.who))}")] if finding.who else []
    else:
        lines.append(printable("    because: " + "; ".join(map(str, shown)))[:400])
    fix = finding.fix.split("\n")
    lines.append(printable(f"    do: {fix[0]}"))
    if fixes or verbose:
        lines += [printable(f"        {line}") for line in fix[1:]]
    if fixes:
        lines.append(f"    more: allaboard explain {finding.rule}")
    return lines


def _total(findings: Sequence[Finding], subjects: Sequence[str], nothing: bool) -> str:
    if nothing:
        if list(subjects) != ["environment"]:
            judged = subjects[0] if len(subjects) == 1 else f"{len(subjects)} files"
            return f"nothing of a launcher or a framework in {printable(judged)}: no finding"
        return (
            "nothing to check: no variable of a launcher or framework is set here; "
            "name files to check, e.g. `allaboard check tf_config.json job.yaml`"
        )
    if not findings and not subjects:
        return (
            "nothing to judge: none of what was given describes a training job; `allaboard check --help` "
            "names what is read"
        )
    counts = {s: sum(f.severity == s for f in findings) for s in ("error", "warning", "info")}
    judged = subjects[0] if len(subjects) == 1 else f"{len(subjects)} subjects"
    if not findings:
        return f"no finding in {printable(judged)}"
    told = ", ".join(_plural(n, s) for s, n in counts.items() if n)
    return f"{told} in {printable(judged)}"


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 and noun != "info" else "")


def printable(text: str) -> str:
    """The text with control and escape characters made visible, so that no file can drive a
    terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
