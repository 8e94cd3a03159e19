"""The cases of bench/field: what people brought, the right answer to each, and how one is scored.

A file holds the cases of one kind. A case begins with ``==== NAME``; its answer follows, a key a
line, and then each of its files after ``---- FILE``. The keys are regular expressions: `right` of
the first finding's rule, `quotes` of what it quotes, `who` of whom it names (``nobody``: no member),
`next` of its next step,
`not` of what may stand in no finding. ``exit`` is the exit code of `allaboard diagnose`, 1 if it is
left out. `open` says why a case has no right answer yet. At most one finding may be an error: one
fact is one finding.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
from allaboard.facts import Diagnosis, Finding, Severity
from allaboard.rules.engine.catalogue import load_catalogue

FOLDER = Path(__file__).parent / "field"
NOBODY = "nobody"
"""The value of ``who`` if the input does not say whose fault it is."""
_UNNAMED = re.compile(r"(?:pid \d+|a process|an unknown rank|the launcher).*")


@dataclass
class Case:
    """One input with its right answer."""

    kind: str
    """The file that it is from."""
    name: str
    """Its name in that file."""
    source: str = ""
    """The project and the title of its report; or that it was reworded, or which class it stands for."""
    right: str = ""
    """Rules that name the cause; "" if there is nothing to report."""
    who: str = "."
    """Who is named."""
    quotes: str = ""
    """What its sentence or its evidence must quote; "" for anything."""
    next: str = "."
    """What the next step must say."""
    forbidden: str = ""
    """What must not be said; "" for nothing."""
    exit: int = 1
    """Exit code of `allaboard diagnose`."""
    open: str = ""
    """Why it is not answered rightly yet; "" if it is."""
    files: dict[str, str] = field(default_factory=dict)
    """The files by their names."""

    @property
    def is_public(self) -> bool:
        """Return True if it was written after a public report."""
        return not self.source.startswith(("reworded:", "class:", "drill:", "healthy:"))


@dataclass(frozen=True)
class Score:
    """What an answer got right, and the answer itself."""

    answer: str
    """The rules and the first summary and next step, as one line."""
    wrong: tuple[str, ...]
    """The parts that are not right: ``cause``, ``who``, ``next``, ``said``, ``exit``; empty if all are."""


def read_cases(folder: Path = FOLDER) -> Iterator[Case]:
    """Yield all cases of a folder, file by file."""
    for path in sorted(folder.glob("*.txt")):
        for part in re.split(r"^==== ", path.read_text(), flags=re.MULTILINE)[1:]:
            yield _read_case(path.stem, part)


def _read_case(kind: str, text: str) -> Case:
    head, *files = re.split(r"^---- ", text, flags=re.MULTILINE)
    name, *lines = head.splitlines()
    case = Case(kind=kind, name=name.strip())
    for line in lines:
        key, _, value = line.partition(": ")
        if key == "exit":
            case.exit = int(value)
        else:
            setattr(case, {"not": "forbidden"}.get(key, key), value)
    for part in files:
        file_name, _, content = part.partition("\n")
        case.files[file_name.strip()] = content
    return case


def diagnose_case(case: Case) -> Diagnosis:
    """Return the answer of `allaboard diagnose` to the files of a case."""
    with tempfile.TemporaryDirectory(prefix="allaboard-field-") as name:
        paths = []
        for file_name, content in case.files.items():
            path = Path(name) / file_name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            paths.append(path)
        return diagnose_paths(paths, load_catalogue())


def score(case: Case, diagnosis: Diagnosis) -> Score:
    """Return which parts of the answer are right."""
    findings = diagnosis.findings
    errors = [f for f in findings if f.severity is Severity.ERROR]
    wrong = []
    if not case.right:
        wrong += ["cause"] if errors else []
        wrong += ["exit"] if case.exit != bool(findings) else []
        return Score(_one_line(diagnosis), tuple(wrong))
    first = findings[0] if findings else None
    if first is None or not re.fullmatch(case.right, first.rule) or len(errors) > 1:
        wrong.append("cause")
    if first is not None and not re.search(case.quotes, _quoted(first)) and not wrong:
        wrong.append("cause")
    if first is None or not _names_right(case.who, first.summary, [w.name for w in first.who]):
        wrong.append("who")
    if first is None or not re.search(case.next, first.fix):
        wrong.append("next")
    said = "\n".join(f"{f.summary}\n{f.fix}" for f in findings)
    if case.forbidden and re.search(case.forbidden, said):
        wrong.append("said")
    if bool(findings) != bool(case.exit):
        wrong.append("exit")
    return Score(_one_line(diagnosis), tuple(wrong))


def _quoted(finding: Finding) -> str:
    return "\n".join([finding.summary, *(e.observed for e in finding.evidence)])


def _names_right(who: str, summary: str, names: list[str]) -> bool:
    named = [n for n in names if not _UNNAMED.fullmatch(n)]
    nobody_may_be_named = NOBODY in who.split("|") or "a process" in who.split("|")
    if not named and nobody_may_be_named:
        return True
    return bool(re.search(who, " ".join([summary, *names])))


def _one_line(diagnosis: Diagnosis) -> str:
    if not diagnosis.findings:
        return "no finding"
    first = diagnosis.findings[0]
    rules = " ".join(f.rule for f in diagnosis.findings)
    return f"{rules}: {first.summary} -> {first.fix}"
