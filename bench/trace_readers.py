"""What PyTorch's own reader of Flight Recorder traces and `allaboard diagnose` print of the same files.

The traces are those of bench/field, which were written after public reports. `torchfrtrace`, which PyTorch
installs, reads pickles, and gets the same content as one file for each rank; `allaboard diagnose` gets the
files as they stand in bench/field. Of the inputs of bench/field these are the only ones that another tool of
this comparison reads: the others are logs, dumps and messages.

`torchfrtrace` is quoted without the lines that describe the call; nothing is judged.
"""

from __future__ import annotations

import json
import pickle
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import sheet
from field_cases import Case, diagnose_case, read_cases

TRACE_MARK = '"pg_config"'
"""Stands in every trace."""
PREFIX = "trace_rank_"
"""Names of the files for `torchfrtrace`, before the rank."""
TELLING = re.compile(
    r"Collective sequence|error msg|Not all ranks|missing ranks|\w*Error|collective: "
)
MAX_LINES = 6
TIMEOUT_S = 120.0


def trace_cases() -> Iterator[Case]:
    """Yield the cases all of whose files are traces."""
    for case in read_cases():
        if case.files and all(TRACE_MARK in text for text in case.files.values()):
            yield case


def quote_torchfrtrace(case: Case, python: str) -> str:
    """Return what `torchfrtrace` says of the traces of a case."""
    with tempfile.TemporaryDirectory(prefix="allaboard-traces-") as folder:
        for name, text in case.files.items():
            rank = re.findall(r"\d+", name)[-1]
            (Path(folder) / f"{PREFIX}{rank}").write_bytes(pickle.dumps(json.loads(text)))
        command = [str(Path(python).with_name("torchfrtrace")), folder, "-p", PREFIX]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    lines = [m for m in (done.stdout + done.stderr).splitlines() if TELLING.match(m)]
    return "\n".join(lines[:MAX_LINES]) or "(nothing)"


def quote_diagnose(case: Case) -> str:
    """Return what `allaboard diagnose` says of the files of a case."""
    findings = diagnose_case(case).findings
    return "\n".join(f"{f.rule} {f.name}: {f.summary}" for f in findings) or "no finding"


def main() -> None:
    options = sheet.arguments(__doc__).parse_args()
    parts = []
    for case in trace_cases():
        parts.append(f"## {case.name}\n\nFrom: {case.source}.")
        for tool, text in (
            ("torchfrtrace", quote_torchfrtrace(case, options.python)),
            ("allaboard diagnose", quote_diagnose(case)),
        ):
            parts.append(f"**{tool}**\n\n```text\n{text}\n```")
    facts = sheet.circumstances(options.python)
    sheet.page("trace_readers", __doc__, facts, "\n\n".join(parts), options.results)


if __name__ == "__main__":
    main()
