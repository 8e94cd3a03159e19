"""Writes the reference pages from the parsers, types and docstrings: reference_pages.py [--check] DIR.

With --check it writes nothing, and fails if a page is not what it would write.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from allaboard.cli.commands import COMMANDS
from allaboard.facts import report as report_types
from allaboard.options.command_parser import CommandParser, build_parser

SOURCE = Path(__file__).resolve().parents[1] / "src" / "allaboard"
NOTE = "<!-- Made by scripts/reference_pages.py; run: make docs -->\n"
PYTHON_API = {
    "allaboard": (("dropin/torch.py", "init_process_group"), ("dropin/roll_call.py", "roll_call"),
                  ("dropin/roll_call.py", "Roster"), ("dropin/error.py", "RollCallError")),
    "allaboard.tensorflow": (("tensorflow.py", "MultiWorkerMirroredStrategy"),
                             ("tensorflow.py", "ParameterServerStrategy"),
                             ("tensorflow.py", "roll_call")),
    "allaboard.jax": (("jax.py", "initialize"),),
}  # fmt: skip
"""Module that users import from, and for each of its names the file that defines it."""


def cell(text: str) -> str:
    """Return the text for a cell of a table; placeholders in angle brackets stay text."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def option_rows(parser: CommandParser, group: argparse._ArgumentGroup) -> Iterator[str]:
    """Yield a row for each argument of a group that is not hidden."""
    declared = parser.declared_arguments()
    for action in group._group_actions:
        if action.help == argparse.SUPPRESS or action not in declared:
            continue
        value = ""
        if action.nargs != 0 or not action.option_strings:
            value = str(action.metavar or "|".join(action.choices or [action.dest.upper()]))
        names = ", ".join(action.option_strings)
        typed = f"{names} {value}".strip().replace("|", "\\|")
        yield f"| `{typed}` | {cell((action.help or '').replace('%%', '%'))} |"


def command_part(name: str) -> Iterator[str]:
    """Yield the lines of one command's part."""
    module = importlib.import_module(f"allaboard.cli.{name}")
    parser = build_parser(name, module.add_arguments)
    yield f"\n## {name}\n"
    yield "```text"
    yield from (line.strip() for line in (parser.usage or f"allaboard {name}").splitlines())
    yield "```\n"
    yield (parser.description or "").strip()
    for group in parser._action_groups:
        rows = list(option_rows(parser, group))
        if rows:
            title = (group.title or "").strip()
            yield f"\n| {title} | |\n|---|---|"
            yield from rows
    if parser.epilog:
        yield f"\n{parser.epilog.strip()}"
    if parser.examples:
        yield "\n```text"
        yield from parser.examples
        yield "```"


def commands_page() -> str:
    lines = [NOTE, "# Commands and options\n"]
    lines.append(
        "The option `--help` of each command prints the same. Exit codes: [exit codes](exit-codes.md)."
    )
    for name in COMMANDS:
        lines += command_part(name)
    return "\n".join(lines) + "\n"


def documented_fields(node: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and docstring of each field of a class."""
    for field, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            text = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                text = str(after.value.value)
            yield field.target.id, ast.unparse(field.annotation), text


def report_page() -> str:
    classes = [
        node
        for node in ast.parse(inspect.getsource(report_types)).body
        if isinstance(node, ast.ClassDef)
    ]
    lines = [
        NOTE,
        "# The report\n",
        "`report.json` in the run folder (and the file of `--report`) has these fields. Programs should "
        "read it by its [JSON Schema](../schemas/report.schema.json), which also has the types that are not "
        "on this page.",
    ]
    for node in sorted(classes, key=lambda c: c.name != "Report"):
        lines.append(f"\n## {node.name}\n\n{ast.get_docstring(node) or ''}\n")
        lines.append("| field | type | meaning |\n|---|---|---|")
        kind_of_node = getattr(report_types, node.name)
        # Some fields have another name in JSON, with their unit.
        json_names = dict(
            zip(kind_of_node.__struct_fields__, kind_of_node.__struct_encode_fields__, strict=True)
        )
        for name, kind, text in documented_fields(node):
            lines.append(f"| `{json_names[name]}` | `{cell(kind)}` | {cell(text)} |")
    return "\n".join(lines) + "\n"


def api_part(file: str, name: str) -> Iterator[str]:
    """Yield signature and docstring of a public name, read from the source without importing it."""
    for node in ast.parse((SOURCE / file).read_text()).body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name != name:
            continue
        yield f"\n### {name}\n\n```python"
        if isinstance(node, ast.FunctionDef):
            result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            yield f"def {name}({ast.unparse(node.args)}){result}"
        else:
            yield f"class {name}({', '.join(ast.unparse(base) for base in node.bases)})"
        yield "```\n"
        yield (ast.get_docstring(node) or "").replace("Raises:\n", "Raises:\n\n")
        if isinstance(node, ast.ClassDef):
            fields = [f"- `{n}: {cell(kind)}`: {text}" for n, kind, text in documented_fields(node)]
            yield "\n" + "\n".join(fields)


def python_page() -> str:
    lines = [NOTE, "# Python\n", "How to use these calls: [in a script](../in-a-script.md)."]
    for module, names in PYTHON_API.items():
        lines.append(f"\n## {module}")
        for file, name in names:
            lines += api_part(file, name)
    return "\n".join(line.rstrip() for line in "\n".join(lines).splitlines()) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "report.md": report_page,
    "python.md": python_page,
}
"""Name of each page, and the function that makes it."""


def write_pages(folder: Path) -> None:
    """Write all pages into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        (folder / name).write_text(make())


def stale_pages(folder: Path) -> list[str]:
    """Return the names of the pages that are not what would be written."""
    return [n for n, make in PAGES.items() if (folder / n).read_text() != make()]


def main(words: list[str]) -> int:
    folder = Path(next(word for word in words if not word.startswith("-")))
    if "--check" not in words:
        write_pages(folder)
        return 0
    stale = stale_pages(folder)
    if stale:
        print(f"stale in {folder}: {', '.join(stale)}; run: make docs", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
