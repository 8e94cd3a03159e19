"""What a script does to the environment and imports before anything else, by its text alone; and setting and
restoring variables around such imports. Runs in the user's Python, where allaboard need not be installed."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

INSTALLED_FOLDERS = ("site-packages", "dist-packages")
"""Folders whose modules may be imported early; the user's own may do things when they are."""
MAX_FILES = 500
"""Files of the user's own that are read for what they import."""
QUIET_MODULES = frozenset(
    (
        "argparse",
        "collections",
        "dataclasses",
        "functools",
        "gc",
        "logging",
        "re",
        "time",
        "typing",
        "warnings",
    )
)
"""Modules whose functions may be called between imports: they leave the environment and the path alone."""
QUIET_FUNCTIONS = frozenset(
    (
        "bool",
        "float",
        "int",
        "os.environ.get",
        "os.getenv",
        "os.path.dirname",
        "os.path.join",
        "str",
    )
)

EarlyStep = tuple[str, Optional[str], bool]  # noqa: UP045 - evaluated, in Python 3.9 too
"""A variable, its value, and whether it is set only where it is not; or a module, None, False."""


def early_steps(text: bytes) -> list[EarlyStep]:
    """Return what the script's top level does to the environment and imports, in order: TensorFlow
    reads some variables while it is imported. Empty if the text is not Python."""
    return [step for node in _statements(text) for step in _steps(node)]


def certain_steps(arguments: list[str]) -> list[EarlyStep]:
    """Return the first steps of what an interpreter with these arguments (a script, or -m and a module)
    does.

    In place of a module of the user's own there is what that imports. The list ends before the first
    statement whose effect is not known: it may change a variable that a framework reads while it is imported.
    """
    folder = Path.cwd() if arguments[0] == "-m" else Path(arguments[0]).resolve().parent
    return list(_OwnFiles([str(folder), *sys.path]).follow_command(arguments))


def set_variable(name: str, value: str | None) -> None:
    """Set a variable of this process's environment, or remove it if the value is None."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def restore_variables(replaced: Mapping[str, tuple[str | None, str | None]]) -> None:
    """Undo settings that held during imports: ``replaced`` has the value before and the one that was set, by
    name. A variable that has yet another value was set by a module, as it will be in the script."""
    for name, (value_before, value) in replaced.items():
        if os.environ.get(name) == value:
            set_variable(name, value_before)


def is_installed(name: str) -> bool:
    """Return True if the package of this module is found where packages are installed."""
    try:
        spec = importlib.util.find_spec(name.partition(".")[0])
    except (ImportError, ValueError):
        return False
    return spec is not None and _lies_installed(spec.origin)


def _lies_installed(path: str | None) -> bool:
    return any(folder in (path or "") for folder in INSTALLED_FOLDERS)


def _statements(text: bytes) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return []


def _steps(node: ast.stmt) -> list[EarlyStep]:
    if isinstance(node, ast.Import):
        return [(a.name, None, False) for a in node.names]
    if isinstance(node, ast.ImportFrom):
        return [(node.module, None, False)] if node.module and not node.level else []
    return _setting(node)


def _setting(node: ast.stmt) -> list[EarlyStep]:
    """Return `os.environ[NAME] = VALUE` or `os.environ.setdefault(NAME, VALUE)` with literal words
    as a step."""
    arguments: list[ast.expr] = []
    default = False
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        if ast.unparse(target.value) == "os.environ":
            arguments = [target.slice, node.value]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        default = ast.unparse(node.value.func) == "os.environ.setdefault"
        arguments = node.value.args if default else []
    texts = [w.value for w in arguments if isinstance(w, ast.Constant) and isinstance(w.value, str)]
    return [(texts[0], texts[1], default)] if len(texts) == 2 else []


class _OwnFiles:
    """Follows the imports of the user's own modules, each file once, up to the first statement whose effect
    is not known."""

    def __init__(self, path: list[str]) -> None:
        self._path = path
        self._seen: set[Path] = set()
        self._is_certain = True

    def follow_command(self, arguments: list[str]) -> Iterator[EarlyStep]:
        """Yield the steps of this script, or module after -m."""
        if arguments[0] != "-m":
            yield from self.follow(Path(arguments[0]))
            return
        packages, _, module = arguments[1].rpartition(".")
        if packages:
            yield from self._follow_import(packages)
        if not is_installed(arguments[1]):
            parts = [part for part in (*packages.split("."), module) if part]
            yield from self.follow(find_source(parts, self._path, is_main=True))

    def follow(self, file: Path | None) -> Iterator[EarlyStep]:
        """Yield the steps of this file."""
        if file is None or file in self._seen:
            return
        self._seen.add(file)
        self._is_certain = self._is_certain and len(self._seen) <= MAX_FILES
        try:
            text = file.read_bytes()
        except OSError:
            return
        for node in _statements(text):
            if not self._is_certain:
                return
            yield from self._follow_statement(node, file)

    def _follow_statement(self, node: ast.stmt, file: Path) -> Iterator[EarlyStep]:
        if isinstance(node, ast.Try):
            for inner in node.body:
                yield from self._follow_statement(inner, file)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield from self._follow_import(alias.name)
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            if node.level:
                folders = [str(folder) for folder in file.parents[node.level - 1 : node.level]]
                yield from self._follow_own((node.module or "").split("."), names, folders)
            elif node.module:
                yield from self._follow_import(node.module, names)
        elif setting := _setting(node):
            yield from setting
        elif not _is_quiet(node):
            self._is_certain = False

    def _follow_import(self, name: str, members: Sequence[str] = ()) -> Iterator[EarlyStep]:
        top = name.partition(".")[0]
        if not self._is_certain:
            return
        try:
            spec = importlib.machinery.PathFinder.find_spec(top, self._path)
        except (ImportError, ValueError):
            spec = None
        if spec is not None and _lies_installed(spec.origin):
            yield name, None, False
        elif spec is not None and top not in getattr(sys, "stdlib_module_names", ()):
            yield from self._follow_own(name.split("."), members, self._path)

    def _follow_own(
        self, parts: list[str], members: Sequence[str], folders: list[str]
    ) -> Iterator[EarlyStep]:
        """Yield the steps of a module of the user's own: of the packages that it lies in, of itself, and of
        those ``members`` of it that are modules."""
        chains = [parts[:depth] for depth in range(1, len(parts) + 1)]
        for chain in chains + [[*parts, member] for member in members]:
            names = [name for name in chain if name]
            yield from self.follow(find_source(names, folders) if names else None)


def find_source(parts: list[str], folders: list[str], is_main: bool = False) -> Path | None:
    """Return the file of the module with these names, the first below these folders; of its ``__main__`` if
    it is a package to be run."""
    for folder in folders:
        base = Path(folder or ".").joinpath(*parts)
        package = base / ("__main__.py" if is_main else "__init__.py")
        for file in (package, base.with_name(f"{base.name}.py")):
            if file.is_file():
                return file
    return None


def _is_quiet(node: ast.stmt) -> bool:
    """Return True if the statement changes neither the environment nor the path: it defines something, or
    gives a name the value of calls that are known."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass)):
        return True
    if isinstance(node, ast.If):
        test = ast.unparse(node.test)
        return test.endswith("TYPE_CHECKING") or test.startswith("__name__ ==")
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.Expr)):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if any(isinstance(target, (ast.Subscript, ast.Attribute)) for target in targets):
        return False
    called = [ast.unparse(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)]
    return all(c in QUIET_FUNCTIONS or c.partition(".")[0] in QUIET_MODULES for c in called)
