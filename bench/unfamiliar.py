"""What `diagnose` makes of a log none of whose words is in any of its tables or readers of messages.

This is `bench/unnoted.py` at its strictest. Each case of bench/field is answered twice: as it is, and with
all knowledge of wordings left out that has answered it: the rows of all tables that match anything in its
files, and every message of every reader except those that read the form of a log (rule LOG012) and its
exits. What is left is what an unknown program's failure would get: tracebacks, exit codes, prefixes of
launchers and collectors, records of errors, repeated waits, last sentences, and advice from single words.

An answer is judged by what it can do without knowing the cause by its code:

- `heard`: it says that the job failed (exit code 1);
- `who`: it names the right member, or nobody where the input does not say;
- `cause`: its first finding quotes the line from which the answer with all knowledge concludes, and not a
  consequence, a warning or a launcher's summary. Both quote it if they name the same line of the same
  file, share SHARED_WORDS words in a row, or a type of exception that is not one of Python's own. Cases
  whose full answer quotes no line are not judged;
- `not misled`: it says nothing of what must not be said;
- `all four`, and `next step too`: the next step is the expected one as well.

Where the full answer itself is not right, or no wording was needed, the case is left out.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import sheet
from field_cases import FOLDER, Case, Score, diagnose_case, read_cases, score
from unnoted import watched

from allaboard.contracts import LogReader
from allaboard.diagnosis.logs import run_readers
from allaboard.diagnosis.readers.fatal_log import UNEXPLAINED_END
from allaboard.facts import Diagnosis, Exhibit, Finding, Testimony

COLUMNS = ("heard", "who", "cause", "not misled", "all four", "next step too")
SHARED_WORDS = 4
"""Words in a row that two quotes of one line have in common."""
_ORIGIN = re.compile(r"/allaboard-field-[^/]+/(?P<file>.+):(?P<line>\d+)$")
"""The place of a quote in a case's files, which lie in a temporary folder."""


def without_messages(reader: LogReader, used: set[str]) -> LogReader:
    """Return the reader without the messages that it knows; ``used`` gets the rules of those left out."""

    def read(exhibit: Exhibit) -> Testimony | None:
        testimony = reader.read(exhibit)
        if testimony is None:
            return None
        used.update(h.rule for h in testimony.heard if h.rule != UNEXPLAINED_END)
        used.update("watchdog" for _ in testimony.overdue)
        kept = tuple(h for h in testimony.heard if h.rule == UNEXPLAINED_END)
        return msgspec.structs.replace(testimony, heard=kept, overdue=())

    return LogReader(read=read)


@contextmanager
def unfamiliar(used: set[str], left_out: set[str]) -> Iterator[None]:
    """Answer without the rows in ``left_out`` and without messages; ``used`` gets what would have counted."""
    kept: Any = run_readers._load_readers
    readers, broken = kept()
    with watched(used, left_out):
        run_readers._load_readers = lambda: (  # type: ignore[assignment]
            tuple((name, without_messages(reader, used)) for name, reader in readers),
            broken,
        )
        try:
            yield
        finally:
            run_readers._load_readers = kept


def answer_unfamiliar(case: Case) -> tuple[Score, bool | None] | None:
    """Return the answer without the knowledge of its words, and True if it quotes the same line; None if the
    case needs no such knowledge, or is not answered rightly with it."""
    used: set[str] = set()
    with watched(used, set()):
        full = diagnose_case(case)
    if score(case, full).wrong:
        return None
    messages: set[str] = set()
    with unfamiliar(messages, used):
        strange = diagnose_case(case)
    if not used and not messages:
        return None
    return score(case, strange), quotes_same_line(case, full, strange)


_EXCEPTION = re.compile(r"\b[A-Z][a-z]+[A-Z]\w{6,80}(?:Error|Exception)\b")
"""A type of exception that is seldom raised for two reasons in one log."""


def quotes_same_line(case: Case, full: Diagnosis, strange: Diagnosis) -> bool | None:
    """Return True if the first findings quote one line; None if that of the full answer quotes none."""
    expected = _quotes(case, full.findings[0])
    if not expected:
        return None
    if not strange.findings:
        return False
    quotes = _quotes(case, strange.findings[0])
    if quotes.keys() & expected.keys():
        return True
    first = strange.findings[0]
    texts = [first.summary, *(e.observed for e in first.evidence), *quotes.values()]
    shared = set().union(*map(_runs, texts))
    exceptions = set(_EXCEPTION.findall(" ".join(texts)))
    return any(
        shared & _runs(text) or exceptions & set(_EXCEPTION.findall(text))
        for text in expected.values()
    )


def _quotes(case: Case, finding: Finding) -> dict[str, str]:
    """Return what the finding quotes, by its place in the files of the case, with the line itself."""
    quotes: dict[str, str] = {}
    for evidence in finding.evidence:
        place = _ORIGIN.search(evidence.origin)
        if place is not None and place["file"] in case.files:
            line = case.files[place["file"]].split("\n")[int(place["line"]) - 1]
            quotes[f"{place['file']}:{place['line']}"] = f"{line}\n{evidence.observed}"
    return quotes


def _runs(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return set(zip(*(words[n:] for n in range(SHARED_WORDS)), strict=False))


def parts(result: Score, same_line: bool | None) -> dict[str, bool]:
    """Return what of the answer is right, by the columns of the table."""
    heard, who, said = (part not in result.wrong for part in ("exit", "who", "said"))
    cause = same_line is not False
    right = heard and who and said and cause
    values = (heard, heard and who, cause, said, right, right and "next" not in result.wrong)
    return dict(zip(COLUMNS, values, strict=True))


Answers = dict[str, tuple[Case, Score, dict[str, bool]]]
"""The cases by their names, with the answers and what of them is right."""


def body(answers: Answers) -> str:
    """Return the table, and the names of the answers that are not right in a column."""
    groups: dict[str, list[dict[str, bool]]] = defaultdict(list)
    for case, _, right in answers.values():
        groups[case.kind].append(right)
        groups["all"].append(right)
    last = groups.pop("all", [])
    rows = [
        (kind, len(found), *(sum(right[c] for right in found) for c in COLUMNS))
        for kind, found in [*sorted(groups.items()), ("all", last)]
    ]
    text = sheet.table(("kind", "number", *COLUMNS), rows)
    for column in COLUMNS[:4]:
        names = [
            name
            for name, (_, _, right) in answers.items()
            if not right[column] and (right["heard"] or column == "heard")
        ]
        text += f"\n## Not right: {column} ({len(names)})\n\n"
        text += "".join(f"- {name}\n" for name in names)
    return text


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("--show", action="store_true", help="print the answers")
    options = parser.parse_args()
    facts = sheet.circumstances(options.python)
    answers: Answers = {}
    for case in read_cases(FOLDER):
        if not case.right or case.open:
            continue
        answer = answer_unfamiliar(case)
        if answer is None:
            continue
        right = parts(*answer)
        answers[f"{case.kind}/{case.name}"] = (case, answer[0], right)
        if options.show:
            wrong = [column for column, value in right.items() if not value]
            print(f"{case.kind}/{case.name} {wrong}\n  {answer[0].answer[:400]}")
    sheet.page("unfamiliar", __doc__, facts, body(answers), options.results)
    raise SystemExit(os.EX_OK)


if __name__ == "__main__":
    main()
