"""What `check` found, as a linter prints it and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from allaboard.facts import Finding
from allaboard.report.finding_text import finding_lines
from allaboard.report.json_text import indented_json
from allaboard.report.plain_text import DEFAULT_WIDTH, clean

SCHEMA_VERSION = 1
"""Version of the published format."""


class CheckReport(msgspec.Struct, frozen=True, kw_only=True):
    """The document that `check --format json` prints. Its published JSON Schema is made from this type."""

    schema: int = SCHEMA_VERSION
    """Version of the format."""
    allaboard: str
    """Version of allaboard."""
    subjects: tuple[str, ...]
    """Everything that was judged: ``environment``, or the files and the roles of manifests."""
    findings: tuple[Finding, ...]
    """All findings, in the order in which they are printed."""


def as_json(findings: Sequence[Finding], subjects: Sequence[str]) -> str:
    """Return a CheckReport as indented JSON."""
    from allaboard import __version__

    report = CheckReport(allaboard=__version__, subjects=tuple(subjects), findings=tuple(findings))
    return indented_json(report)


def as_text(
    findings: Sequence[Finding],
    subjects: Sequence[str],
    *,
    nothing: bool = False,
    fixes: bool = False,
    verbose: bool = False,
    colour: bool = False,
    width: int = DEFAULT_WIDTH,
) -> str:
    """Return the findings as lines, and a last line that says what was judged.

    ``nothing``: nothing that was given describes a training job. ``fixes``: the whole text of each fix is
    printed, and the command that explains the rule.
    """
    lines: list[str] = []
    for finding in findings:
        lines += finding_lines(finding, colour, verbose, width=width, location=True, paste=fixes)
        lines += [f"  more allaboard explain {finding.rule}"] if fixes else []
    lines.append(_summary_line(findings, subjects, nothing))
    return "".join(f"{line}\n" for line in lines)


def _summary_line(findings: Sequence[Finding], subjects: Sequence[str], nothing: bool) -> str:
    if nothing:
        if list(subjects) != ["environment"]:
            subject = subjects[0] if len(subjects) == 1 else f"{len(subjects)} files"
            return f"nothing of a launcher or a framework in {clean(subject)}: no finding"
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
    subject = subjects[0] if len(subjects) == 1 else f"{len(subjects)} subjects"
    if not findings:
        return f"no finding in {clean(subject)}"
    listed = ", ".join(_count_phrase(n, s) for s, n in counts.items() if n)
    return f"{listed} in {clean(subject)}"


def _count_phrase(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 and noun != "info" else "")
