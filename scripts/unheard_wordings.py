"""Lists a framework's error messages about distribution that no reader of `allaboard diagnose` hears.

    python scripts/unheard_wordings.py torch tensorflow jax jaxlib
    python scripts/unheard_wordings.py ~/src/nccl/src ~/src/vllm/vllm --all
    python scripts/unheard_wordings.py torch --under distributed/elastic

A target is an installed package, or a folder of sources. The messages are the literals of ``raise`` and of
error logs in Python, of error macros in C++, and what looks like them in shared libraries. Each is given to
all readers with a number in place of what it fills in. ``--all`` lists those that are heard too, each with
the rule. Many of what is listed are mistakes in a call, which the exception's own message explains best:
look for those that tell of other members.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import mmap
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from allaboard.analysis.failures.known_errors import known_error_advice
from allaboard.analysis.failures.library_errors import explain_library_error
from allaboard.analysis.log_messages import KnownMessage
from allaboard.contracts import LogReader
from allaboard.diagnosis import readers
from allaboard.diagnosis.readers.fatal_log import UNEXPLAINED_END
from allaboard.facts import Exhibit, Frame, Raised
from allaboard.plugins import Plugin, plugins

FILLER = "7"
"""Stands for every value that a message fills in."""
MIN_CHARS = 20
"""Characters of the shortest message that is looked at."""
MAX_LIBRARY_STRING = 400
"""Characters of the longest string of a shared library that is taken for a message."""
SKIPPED_FOLDERS = {
    "test",
    "tests",
    "testing",
    "testdata",
    "_internal",
    "__pycache__",
    "third_party",
    "benchmarks",
}
PYTHON_SUFFIXES, CPP_SUFFIXES = {".py"}, {".cc", ".cpp", ".cu", ".h", ".hpp", ".cuh"}
_ABOUT_DISTRIBUTION = re.compile(
    # A rank of tensors is another thing.
    r"\b(?:(?:global|local|node|this|each|other|every|all|some|source|src|dst)[ _-]ranks?|ranks"
    r"|(?<!have )(?<!of )(?<!be )(?<!expected )(?<!got )(?<!or )rank [0-9%{]|world[ _]size"
    r"|process[ _]?groups?|rendezvous|TCPStore|FileStore|collective (?:op|comm|call|inst|group)\w*|nccl|gloo"
    r"|heartbeats?|coordinator|coordination|cluster[ _](?:spec|resolver)|task_(?:type|id)|TF_CONFIG"
    r"|parameter servers?|incarnation|node_rank|master[ _](?:addr|port)\w*|hostfile|not enough slots"
    r"|distributed (?:init|env|service|backend|package|system)\w*)(?![A-Za-z])",
    re.IGNORECASE,
)
_ABOUT_FAILURE = re.compile(
    r"fail|error|time(?:d)? ?out|unable|cannot|could "
    r"not|can't|mismatch|unexpected|refused|closed|lost|exceed|abort"
    r"|invalid|not "
    r"(?:set|found|match|available|supported|initialized|reachable)|must|should|expected|died|crash|unhealthy",
    re.IGNORECASE,
)
_ERROR_CALL = re.compile(
    r"\b(?:TORCH_CHECK\w*|TORCH_INTERNAL_ASSERT|C10_THROW_ERROR|C10D_ERROR|WARN|LOG\((?:ERROR|FATAL|WARNING)\)|GLOO_\w+"
    r"|errors::\w+|absl::\w+Error|tsl::errors::\w+|xla::\w+Error|\w+Error|throw \w[\w:]*)\s*(?=[(<])"
)
_CPP_LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_VALUE = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?(?:ll|l|z|h)?[a-zA-Z]|\{[^{}\n]{0,40}\}|\$\d")
_PRINTABLE = re.compile(rb"[\x20-\x7e\n]{%d,%d}\x00" % (MIN_CHARS, MAX_LIBRARY_STRING))
_ERROR_LOGS = {"error", "exception", "critical", "warning", "fatal", "warn"}
_FRAMES = (
    Frame("/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 1, "f"),
    Frame("/job/train.py", 1, "main"),
)


class Wording(NamedTuple):
    """One message of a framework."""

    place: str
    """File and line, or the library."""
    text: str
    """The message, with `FILLER` in place of its values."""
    exception: str = ""
    """Type of the exception that it is raised with; "" if it is logged."""


def main() -> int:
    """Print the messages that no reader hears, and how many are heard."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="+", metavar="PACKAGE|FOLDER")
    parser.add_argument("--under", default="", help="only files whose path contains this")
    parser.add_argument("--all", action="store_true", help="list the messages that are heard too")
    options = parser.parse_args()
    for target in options.targets:
        root = find_root(target)
        if root is None:
            print(f"{target}: neither a folder nor an installed package", file=sys.stderr)
            return 2
        wordings = [w for w in find_wordings(root) if options.under in w.place]
        rules = {w: heard_as(w) for w in wordings}
        for wording in wordings:
            if options.all or not rules[wording]:
                print(f"{rules[wording] or 'unheard':10} {wording.place}: {wording.text[:200]!r}")
        heard_count = sum(map(bool, rules.values()))
        print(f"{target}: {len(wordings)} messages about distribution, {heard_count} heard")
    return 0


def find_root(target: str) -> Path | None:
    """Return the folder of a target; None if there is none."""
    if Path(target).is_dir():
        return Path(target)
    spec = importlib.util.find_spec(target) if target.isidentifier() else None
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def find_wordings(root: Path) -> Iterator[Wording]:
    """Yield each message about distribution in a folder once."""
    texts = set()
    for file in sorted(p for p in root.rglob("*") if p.is_file()):
        relative = file.relative_to(root)
        if SKIPPED_FOLDERS & set(relative.parts):
            continue
        for wording in _wordings_of_file(file, str(relative)):
            if is_relevant(wording.text) and wording.text not in texts:
                texts.add(wording.text)
                yield wording


def _wordings_of_file(file: Path, name: str) -> Iterable[Wording]:
    if file.suffix in PYTHON_SUFFIXES:
        return wordings_in_python(file.read_text(errors="replace"), name)
    if file.suffix in CPP_SUFFIXES:
        return wordings_in_cpp(file.read_text(errors="replace"), name)
    if ".so" in file.suffixes:
        return wordings_in_library(file)
    return ()


def is_relevant(text: str) -> bool:
    """Return True for the text of a failure that has to do with several processes."""
    return (
        len(text) >= MIN_CHARS
        and " " in text.strip()
        and bool(_ABOUT_DISTRIBUTION.search(text))
        and bool(_ABOUT_FAILURE.search(text))
    )


def wordings_in_python(source: str, name: str) -> Iterator[Wording]:
    """Yield the messages that Python code raises, or logs as an error or a warning."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            text = " ".join(filter(None, map(_literal, node.exc.args)))
            function = node.exc.func
            exception = function.attr if isinstance(function, ast.Attribute) else ""
            exception = function.id if isinstance(function, ast.Name) else exception
            yield Wording(f"{name}:{node.lineno}", text, exception)
        elif isinstance(node, ast.Call) and _is_error_log(node.func) and node.args:
            yield Wording(f"{name}:{node.lineno}", _literal(node.args[0]))


def _is_error_log(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in _ERROR_LOGS


def _literal(node: ast.expr) -> str:
    """Return the text of an expression, with `FILLER` for values; "" if it has none."""
    if isinstance(node, ast.Constant):
        return _filled(node.value) if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        parts = [_literal(v) if isinstance(v, ast.Constant) else FILLER for v in node.values]
        return "".join(parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
        right = _literal(node.right) if isinstance(node.op, ast.Add) else ""
        return _literal(node.left) + right
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _literal(node.func.value) if node.func.attr == "format" else ""
    return ""


def _filled(text: str) -> str:
    return _VALUE.sub(FILLER, text)


def wordings_in_cpp(source: str, name: str) -> Iterator[Wording]:
    """Yield the messages of error macros and exceptions in C++: their literals, with values between them."""
    for call in _ERROR_CALL.finditer(source):
        end = source.find(";", call.end())
        statement = source[call.end() : end if end >= 0 else call.end() + 2000][:2000]
        text, position = "", 0
        for literal in _CPP_LITERAL.finditer(statement):
            between = statement[position : literal.start()].strip()
            text += (FILLER if text and between.strip(" \n\t,<+") else "") + literal[1]
            position = literal.end()
        plain = _filled(text.replace('\\"', '"').replace("\\n", "\n"))
        yield Wording(f"{name}:{source.count(chr(10), 0, call.start()) + 1}", plain)


def wordings_in_library(file: Path) -> Iterator[Wording]:
    """Yield the strings of a shared library."""
    if file.stat().st_size == 0:
        return
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for match in _PRINTABLE.finditer(data):
            yield Wording(file.name, _filled(match[0][:-1].decode("ascii")))


def heard_as(wording: Wording) -> str:
    """Return what hears the message: a rule's code, or "exception" for what is known of exceptions; "" for
    nothing."""
    line = f"{wording.exception}: {wording.text}" if wording.exception else wording.text
    exhibit = Exhibit(name="framework.log", data=f"{line}\n".encode())
    for reader in _readers():
        testimony = reader.read(exhibit)
        rules = [h.rule for h in testimony.heard if h.rule != UNEXPLAINED_END] if testimony else []
        if rules:
            return rules[0]
    for message in _known_messages():
        if _has_part_of(wording.text, message):
            return message.rule
    raised = Raised(
        type=wording.exception or "RuntimeError",
        message=wording.text,
        raised_at=0.0,
        where=_FRAMES[-1],
        frames=_FRAMES,
    )
    failure = explain_library_error(raised)
    is_known = known_error_advice(raised) or (failure is not None and not failure.is_generic)
    return "exception" if is_known else ""


def _has_part_of(text: str, message: KnownMessage) -> bool:
    """Return True if a known message has this text, or a part of it between two values.

    A library holds a message in parts.
    """
    if len(message.key) >= MIN_CHARS and message.key in text:
        return True
    parts = [p.strip() for p in text.split(FILLER)]
    return any(len(p) >= MIN_CHARS and p in message.sample for p in parts)


@cache
def _known_messages() -> tuple[KnownMessage, ...]:
    return tuple(m for p in _plugins() for m in getattr(p.module, "MESSAGES", ()))


@cache
def _readers() -> tuple[LogReader, ...]:
    return tuple(p.value for p in _plugins())


def _plugins() -> list[Plugin[LogReader]]:
    return [p for p in plugins(readers, "READER", LogReader) if isinstance(p, Plugin)]


if __name__ == "__main__":
    raise SystemExit(main())
