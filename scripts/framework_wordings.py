"""The error messages in a framework's sources: Python, C, C++, Go, help texts, and shared libraries.

Open MPI and PRRTE keep their messages in ``help-*.txt``, MPICH in ``errnames.txt``; both are read whole.
"""

from __future__ import annotations

import ast
import mmap
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

FILLER = "7"
"""Stands for every value that a message fills in."""
MIN_CHARS = 20
"""Characters of the shortest message that is looked at."""
MAX_LIBRARY_STRING = 400
"""Characters of the longest string of a shared library that is taken for a message."""
MAX_STATEMENT = 2000
"""Characters of the longest statement whose literals are read."""
SKIPPED_FOLDERS = {
    "test",
    "tests",
    "testing",
    "testdata",
    "testsuite",
    "_internal",
    "__pycache__",
    "third_party",
    "benchmarks",
}
_ABOUT_DISTRIBUTION = re.compile(
    # A rank of tensors is another thing.
    r"\b(?:(?:global|local|node|this|each|other|every|all|some|source|src|dst)[ _-]ranks?|ranks"
    r"|(?<!have )(?<!of )(?<!be )(?<!expected )(?<!got )(?<!or )rank [0-9%{]|world[ _]size"
    r"|process[ _]?groups?|rendezvous|TCPStore|FileStore|collective (?:op|comm|call|inst|group)\w*|nccl|gloo"
    r"|heartbeats?|coordinator|coordination|cluster[ _](?:spec|resolver)|task_(?:type|id)|TF_CONFIG"
    r"|parameter servers?|incarnation|node_rank|master[ _](?:addr|port)\w*|hostfile|not enough slots"
    r"|distributed (?:init|env|service|backend|package|system)\w*"
    # The words of launchers, daemons and networks.
    r"|(?:remote|local|peer|other|compute|head) (?:host|node|process|endpoint)\w*|daemons?|peers?|mpirun"
    r"|srun|slurmd|(?:job )?step|launch(?:er|ing)?|tasks? [0-9%{]|nodes? [0-9%{]|raylet|GCS|actors?"
    r"|worker process\w*|workers? [0-9%{]|engine core|schedulers?|detokenizer|bootstrap|endpoint"
    r"|interfaces?)(?![A-Za-z])",
    re.IGNORECASE,
)
_ABOUT_FAILURE = re.compile(
    r"fail|error|time(?:d)? ?out|unable|cannot|could not|can't|mismatch|unexpected|refused|closed|lost"
    r"|exceed|abort|killed|no longer|missing|not enough|unknown|invalid|not (?:set|found|match|available"
    r"|supported|initialized|reachable)|must|should|expected|died|dead|crash|unhealthy|unreachable",
    re.IGNORECASE,
)
_ERROR_CALL = re.compile(
    r"\b(?:TORCH_CHECK\w*|TORCH_INTERNAL_ASSERT|C10_THROW_ERROR|C10D_ERROR|LOG\((?:ERROR|FATAL|WARNING)\)"
    r"|RAY_(?:CHECK|LOG\((?:ERROR|FATAL|WARNING)\))|GLOO_\w+|(?:WARN|ERROR)(?:_\w+)?"
    r"|errors::\w+|absl::\w+Error|tsl::errors::\w+|xla::\w+Error|\w+Error|Status::\w+|throw [\w:]+"
    r"|ucs_(?:error|fatal|warn|diag)|(?:slurm_)?(?:error|fatal|perror)|HYDU_(?:ERR_\w+|error_printf)"
    r"|opal_output|PRTE_\w*ERR\w*)\s*(?=[(<])"
)
_GO_CALL = re.compile(
    r"\b(?:fmt\.Errorf|errors\.New|(?:klog|log|logger|logrus|glog)\.\w*(?:Error|Warn|Fatal)\w*|\w*[Rr]ecorder\."
    r"Eventf?|\.Error)\s*(?=\()"
)
_LITERAL_IN_QUOTES = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_VALUE = re.compile(
    r"%[-+ #0]*\d*(?:\.\d+)?(?:\" ?PRI[a-zA-Z0-9]+ ?\")?(?:ll|l|z|h)?[a-zA-Z]|\{[^{}\n]{0,40}\}|\$\d"
)
_PRINTABLE = re.compile(rb"[\x20-\x7e\n]{%d,%d}\x00" % (MIN_CHARS, MAX_LIBRARY_STRING))
_ERROR_LOGS = {"error", "exception", "critical", "warning", "fatal", "warn"}
_HELP_TOPIC = re.compile(r"^\[[^\]\n]{1,80}\]\n", re.MULTILINE)
_MPICH_NAME = re.compile(r"^\*\*[\w-]+(?: %\w)*:(?P<text>\S[^\n]*)$", re.MULTILINE)


class Wording(NamedTuple):
    """One message of a framework."""

    place: str
    """File and line, or the library."""
    text: str
    """The message, with `FILLER` in place of its values."""
    exception: str = ""
    """Type of the exception that it is raised with; "" if it is logged."""
    call: str = ""
    """The macro or function of C, C++ or Go that it is given to; "" if there is none."""


def find_wordings(root: Path, *, any_subject: bool = False) -> Iterator[Wording]:
    """Yield each message about distribution in a folder once; with ``any_subject``, those of all failures."""
    texts = set()
    for file in sorted(p for p in root.rglob("*") if p.is_file()):
        relative = file.relative_to(root)
        if SKIPPED_FOLDERS & set(relative.parts):
            continue
        for wording in _wordings_of_file(file, str(relative)):
            if is_relevant(wording.text, any_subject=any_subject) and wording.text not in texts:
                texts.add(wording.text)
                yield wording


def _wordings_of_file(file: Path, name: str) -> Iterable[Wording]:
    if ".so" in file.suffixes:
        return wordings_in_library(file)
    if file.name == "errnames.txt":
        return wordings_of_mpich(file.read_text(errors="replace"), name)
    if file.suffix == ".txt" and file.name.startswith("help-"):
        return wordings_of_help(file.read_text(errors="replace"), name)
    read = _READERS.get(file.suffix)
    return read(file.read_text(errors="replace"), name) if read is not None else ()


def is_relevant(text: str, *, any_subject: bool = False) -> bool:
    """Return True for the text of a failure that has to do with several processes, or, with ``any_subject``,
    of any failure."""
    return (
        len(text) >= MIN_CHARS
        and " " in text.strip()
        and (any_subject or bool(_ABOUT_DISTRIBUTION.search(text)))
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
        elif isinstance(node, ast.Assert) and node.msg is not None:
            yield Wording(f"{name}:{node.lineno}", _literal(node.msg), "AssertionError")
        elif isinstance(node, ast.Call) and node.args and (level := _error_log(node.func)):
            yield Wording(f"{name}:{node.lineno}", _literal(node.args[0]), call=level)


def _error_log(function: ast.expr) -> str:
    is_log = isinstance(function, ast.Attribute) and function.attr in _ERROR_LOGS
    return function.attr if is_log and isinstance(function, ast.Attribute) else ""


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


def _wordings_of_calls(source: str, name: str, calls: re.Pattern[str]) -> Iterator[Wording]:
    """Yield the literals of each statement that begins with one of these calls, with values between them."""
    for call in calls.finditer(source):
        end = source.find(";" if calls is _ERROR_CALL else ")\n", call.end())
        stop = end if end >= 0 else call.end() + MAX_STATEMENT
        statement = source[call.end() : min(stop, call.end() + MAX_STATEMENT)]
        text, position = "", 0
        for literal in _LITERAL_IN_QUOTES.finditer(statement):
            between = statement[position : literal.start()].strip()
            is_value = text and between.strip(" \n\t,<+") and not between.startswith("PRI")
            text += (FILLER if is_value else "") + literal[1]
            position = literal.end()
        plain = _filled(text.replace('\\"', '"').replace("\\n", "\n").replace("\\t", "  "))
        number = source.count("\n", 0, call.start()) + 1
        yield Wording(f"{name}:{number}", plain.strip(), call=call[0].strip())


def wordings_in_cpp(source: str, name: str) -> Iterator[Wording]:
    """Yield the messages of error macros and exceptions in C and C++."""
    return _wordings_of_calls(source, name, _ERROR_CALL)


def wordings_in_go(source: str, name: str) -> Iterator[Wording]:
    """Yield the messages of errors, error logs and events of Kubernetes in Go."""
    return _wordings_of_calls(source, name, _GO_CALL)


def wordings_of_help(source: str, name: str) -> Iterator[Wording]:
    """Yield the texts of a help file of Open MPI or PRRTE, a topic each."""
    plain = re.sub(r"^#.*\n", "", source, flags=re.MULTILINE)
    heads = [*_HELP_TOPIC.finditer(plain)]
    ends = [*(h.start() for h in heads[1:]), len(plain)]
    for head, end in zip(heads, ends, strict=False):
        yield Wording(
            f"{name} {head[0].strip()}", _filled(plain[head.end() : end]).strip(), call="help"
        )


def wordings_of_mpich(source: str, name: str) -> Iterator[Wording]:
    """Yield the messages of MPICH's table of them."""
    for match in _MPICH_NAME.finditer(source):
        number = source.count("\n", 0, match.start()) + 1
        yield Wording(f"{name}:{number}", _filled(match["text"]), call="mpich")


def wordings_in_library(file: Path) -> Iterator[Wording]:
    """Yield the strings of a shared library."""
    if file.stat().st_size == 0:
        return
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for match in _PRINTABLE.finditer(data):
            yield Wording(file.name, _filled(match[0][:-1].decode("ascii")))


_READERS: dict[str, Callable[[str, str], Iterator[Wording]]] = {
    ".py": wordings_in_python,
    ".go": wordings_in_go,
    **dict.fromkeys((".c", ".cc", ".cpp", ".cu", ".h", ".hpp", ".cuh"), wordings_in_cpp),
}
"""What reads the sources of a language, by the suffix of its files."""
