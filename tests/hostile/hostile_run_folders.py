"""Run folders that somebody prepared against whoever makes a report of them: one table, a name and what is
changed in the folder of a real run."""

# ruff: noqa: E501 - a table of changes, each on its line

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostile_files import ESCAPES, HUGE

MARKUP = "</script></style><script>alert('PWNED')</script><img src=x onerror=alert('PWNED')>"
SECRET_LINE = "a line of a file that is not of the run"
JOURNAL, REPORT, SERIES = "journal.jsonl", "report.json", "series.jsonl"
Change = Callable[[Path], None]


def entries(change: Callable[[dict[str, Any]], object]) -> Change:
    """Change every entry of the journal."""

    def make(folder: Path) -> None:
        path = folder / JOURNAL
        values = [json.loads(line) for line in path.read_text().splitlines()]
        for value in values:
            change(value)
        path.write_text("".join(json.dumps(value) + "\n" for value in values))

    return make


def in_texts(value: Any, text: str) -> Any:
    """Return the value with this text behind each text that is no word of ours."""
    if isinstance(value, dict):
        return {k: in_texts(v, text) for k, v in value.items()}
    if isinstance(value, list):
        return [in_texts(v, text) for v in value]
    is_free = isinstance(value, str) and (" " in value or "/" in value or value.endswith(".py"))
    return value + text if is_free else value


def texts_with(text: str) -> Change:
    """Put this behind each free text of the journal and of the report."""

    def make(folder: Path) -> None:
        entries(lambda e: e.update(in_texts(e, text)))(folder)
        path = folder / REPORT
        path.write_text(json.dumps(in_texts(json.loads(path.read_text()), text)))

    return make


def in_views(change: Callable[[dict[str, Any]], object]) -> Change:
    """Change every member of every picture in the journal."""

    def in_entry(entry: dict[str, Any]) -> None:
        for member in entry.get("view", {}).get("members", ()):
            change(member)

    return entries(in_entry)


def replaced(name: str, content: bytes) -> Change:
    """Give this file another content."""

    def make(folder: Path) -> None:
        (folder / name).write_bytes(content)

    return make


def appended(name: str, content: bytes) -> Change:
    def make(folder: Path) -> None:
        with (folder / name).open("ab") as file:
            file.write(content)

    return make


def fifo(name: str) -> Change:
    def make(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return make


def link(name: str, target: str) -> Change:
    def make(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return make


def sparse(name: str) -> Change:
    def make(folder: Path) -> None:
        with (folder / name).open("r+b") as file:
            file.truncate(1 << 30)

    return make


def linked_logs(folder: Path) -> None:
    """Make each log a link to a file beside the folder."""
    for rank in range(4):
        path = folder / f"logs/worker-{rank}.log"
        path.unlink(missing_ok=True)
        path.symlink_to(folder.parent / "secret.log")


def hard_names(name: str) -> Change:
    """Give each member the name of a task that leads out of the folder of logs."""
    return in_views(lambda m: m.update(task=name))


FOR_REPORT: dict[str, Change] = {
    "logs that are links to other files": linked_logs,
    "tasks whose logs are other files": hard_names("../../secret"),
    "tasks of absolute names": lambda folder: hard_names(f"/{folder.parent}/secret")(folder),
    "tasks whose logs are no names": hard_names("\0"),
    "markup in all texts": texts_with(MARKUP),
    "escapes in all texts": texts_with(ESCAPES),
    "texts of 100 kB": texts_with("y" * 100_000),
    "a report that is a FIFO": fifo(REPORT),
    "a series that is a FIFO": fifo(SERIES),
    "a report without end": link(REPORT, "/dev/zero"),
    "a series without end": link(SERIES, "/dev/zero"),
    "a report that names itself": link(REPORT, REPORT),
    "a journal with an empty gibibyte": sparse(JOURNAL),
    "a report with an empty gibibyte": sparse(REPORT),
    "a series with an empty gibibyte": sparse(SERIES),
    "a journal of nothing": replaced(JOURNAL, b""),
    "a journal of other JSON": replaced(JOURNAL, b'[]\n{}\n3\nnull\n{"kind":3}\n{"kind":"view"}\n{"kind":"finding","finding":[]}\n'),
    "a journal of 100,000 levels": appended(JOURNAL, b'{"kind":' + b"[" * 100_000 + b"\n"),
    "a torn journal": appended(JOURNAL, b'{"kind":"view","at":"2026'),
    "20,000 unknown entries": appended(JOURNAL, b'{"kind":"whatever","at":"x"}\n' * 20_000),
    "20,000 notes": appended(JOURNAL, json.dumps({"kind": "event", "at": HUGE, "text": MARKUP + ESCAPES}).encode() + b"\n" * 20_000),
    "2,000 rounds of wrong types": appended(JOURNAL, b'{"kind":"round","at":"x","round":{"number":-1}}\n' * 2000),
    "times that there are not": entries(lambda e: e.update(at="9999-99-99T99:99:99Z")),
    "steps without measure": in_views(lambda m: m.update(step=10**30)),
    "steps below zero": in_views(lambda m: m.update(step=-(2**62))),
    "ranks without measure": in_views(lambda m: m["who"].update(rank=2**62, pid=2**62, index=2**62)),
    "members of one name": in_views(lambda m: m["who"].update(rank=0, pid=1, host="", job="", index=0)),
    "stacks of wrong types": in_views(lambda m: m.update(stack={"frames": [[ESCAPES, -1, MARKUP]], "taken_at": 1e300})),
    "clocks without measure": entries(lambda e: e.get("view", {}).update(now=1e300, launched_at=-1e300)),
    "a picture of 100,000 levels": appended(JOURNAL, b'{"kind":"view","at":"x","view":{"members":' + b"[" * 100_000 + b"]" * 100_000 + b"}}\n"),
    "a report of wrong types": replaced(REPORT, b'{"outcome": 3, "findings": {}}'),
    "a report of 100,000 levels": replaced(REPORT, b"[" * 100_000),
    "a series of wrong types": replaced(SERIES, b'{"kind":"point","step":"x"}\n[]\n' * 100),
    "a series of numbers without measure": appended(SERIES, b'{"kind":"point","taken_at":"x","elapsed_s":1e308,"step":[1e30],"loss":[1e308,-1e308,null]}\n' * 100),
}  # fmt: skip
