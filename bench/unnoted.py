"""What `diagnose` says of a failure whose wording nobody has noted.

The cases of bench/field are answered twice: as they are, and with exactly those rows left out of all tables
(messages of frameworks and launchers, causes of a library's exceptions, known mistakes, advice on a
program's own words) that have matched anything in the files of the case. What remains are the other rows,
and all that reads the form of a log and not its words: tracebacks, exit codes, prefixes, records of errors,
repeated waits, stack dumps. So the case is answered as that of a stranger would be, whose framework words
the same failure in a way that is not known here. Cases that no row has matched are not counted, nor those
in which nothing is to be found.

Such an answer cannot name the cause by its code. What it can do:

- say that the job failed, with exit code 1 (`heard`);
- name the right member, or nobody where the input does not say (`who`);
- say nothing of what must not be said, such as that the user's line is to be fixed (`not misled`).

`all three` is what counts; `next step too` is the share whose next step is right as well.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sheet
from field_cases import FOLDER, Case, Score, diagnose_case, read_cases, score

from allaboard.analysis.failures import known_errors
from allaboard.analysis.failures.gpu_error_causes import Cause
from allaboard.analysis.failures.mistakes.known_mistake import KnownMistake
from allaboard.analysis.log_ends import program_advice
from allaboard.analysis.log_messages import KnownMessage

TABLES: tuple[type[Any], ...] = (KnownMessage, KnownMistake, Cause)
"""Types of the rows; each has its expression in ``compiled``."""
COLUMNS = ("heard", "who", "not misled", "all three", "next step too")


class Watched:
    """An expression of a row that notes whether it matches, or that is left out."""

    def __init__(self, pattern: re.Pattern[str], used: set[str], left_out: set[str]) -> None:
        self._pattern, self._used, self._left_out = pattern, used, left_out

    def search(self, *words: Any) -> re.Match[str] | None:
        """Search as the expression does; None if it is left out."""
        return next(self._matches(self._pattern.search(*words)), None)

    def finditer(self, *words: Any) -> Iterator[re.Match[str]]:
        """Yield the matches of the expression; none if it is left out."""
        for match in self._pattern.finditer(*words):
            yield from self._matches(match)

    def _matches(self, match: re.Match[str] | None) -> Iterator[re.Match[str]]:
        if match is not None and self._pattern.pattern not in self._left_out:
            self._used.add(self._pattern.pattern)
            yield match


@contextmanager
def watched(used: set[str], left_out: set[str]) -> Iterator[None]:
    """Note in ``used`` which expressions of all tables match, and match none of ``left_out``."""
    kept = {table: table.compiled for table in TABLES}
    advice = known_errors._ADVICE_TABLE
    for table in TABLES:
        table.compiled = property(
            lambda row: Watched(re.compile(row.pattern, re.DOTALL), used, left_out)
        )
    known_errors._ADVICE_TABLE = tuple((Watched(p, used, left_out), text) for p, text in advice)  # type: ignore[misc]
    programs = program_advice.TABLE
    program_advice.TABLE = tuple(
        row._replace(pattern=Watched(row.pattern, used, left_out))  # type: ignore[arg-type]
        for row in programs
    )
    try:
        yield
    finally:
        known_errors._ADVICE_TABLE = advice
        program_advice.TABLE = programs
        for table in TABLES:
            table.compiled = kept[table]


def answer_as_strange(case: Case) -> tuple[int, Score | None]:
    """Return how many rows were left out, and the answer without them; None if none has matched."""
    used: set[str] = set()
    with watched(used, set()):
        diagnose_case(case)
    if not used:
        return 0, None
    with watched(set(), used):
        return len(used), score(case, diagnose_case(case))


def parts(result: Score) -> dict[str, bool]:
    """Return what of the answer is right, by the columns of the table."""
    heard, who, said = (part not in result.wrong for part in ("exit", "who", "said"))
    both = heard and who and said
    return dict(
        zip(COLUMNS, (heard, who, said, both, both and "next" not in result.wrong), strict=True)
    )


def body(answers: dict[str, tuple[Case, Score]]) -> str:
    """Return the table, and the answers that are silent or misleading."""
    groups: dict[str, list[Score]] = defaultdict(list)
    for case, result in answers.values():
        groups[case.kind].append(result)
    rows = [
        (kind, len(found), *(sum(parts(r)[c] for r in found) for c in COLUMNS))
        for kind, found in [*sorted(groups.items()), ("all", [r for _, r in answers.values()])]
    ]
    text = sheet.table(("kind", "number", *COLUMNS), rows)
    for title, column in (
        ("Not heard", "heard"),
        ("Misled", "not misled"),
        ("Wrong member", "who"),
    ):
        names = [
            n
            for n, (_, r) in answers.items()
            if parts(r)["heard"] | (column == "heard") and not parts(r)[column]
        ]
        text += f"\n## {title}: {len(names)}\n\n" + "".join(f"- {name}\n" for name in names)
    return text


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("--show", action="store_true", help="print the answers")
    options = parser.parse_args()
    facts = sheet.circumstances(options.python)
    answers: dict[str, tuple[Case, Score]] = {}
    for case in read_cases(FOLDER):
        if not case.right or case.open:
            continue
        _, result = answer_as_strange(case)
        if result is not None:
            answers[f"{case.kind}/{case.name}"] = (case, result)
            if options.show:
                print(f"{case.kind}/{case.name} {' '.join(result.wrong)}\n  {result.answer[:300]}")
    sheet.page("unnoted", __doc__, facts, body(answers), options.results)
    raise SystemExit(os.EX_OK)


if __name__ == "__main__":
    main()
