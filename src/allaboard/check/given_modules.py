"""Python files that are checked together, as modules that import each other's constants."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress

from allaboard.check.read_file import read_source
from allaboard.formats.python.constants import top_level_literals
from allaboard.formats.python_parser import parse_without_warnings

MAX_MODULE_CHARS = 2**18
"""Characters of a module whose constants are read."""
_ASSIGNED = re.compile(r"(?:^|;[ \t]*)([A-Za-z_]\w*)[ \t]*(?::[^=\n]+)?=(?!=)", re.MULTILINE)
"""A name that a statement at the margin assigns, as every constant of a module is."""


class GivenModules:
    """The Python files of one `check`, found by the names under which others import them."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths: dict[str, list[str]] = {}
        """Paths by the last part of the module's name."""
        for path in paths:
            if path.endswith(".py"):
                stem = path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
                self._paths.setdefault(stem, []).append(path)
        self._assigned: dict[str, frozenset[str]] = {}
        """Names that a module may assign, by its path: a module that lacks those imported is not parsed."""
        self._literals: dict[str, dict[str, ast.expr]] = {}

    def constants(self, importer: str, tree: ast.Module) -> dict[str, ast.expr]:
        """Return the constants that a script imports, by the names that it uses: ``PORT``, ``config.PORT``.

        They stand at the script's import, so that findings about them point there.
        """
        constants: dict[str, ast.expr] = {}
        for statement in _top_level_imports(tree):
            for module, name, local in _imports(statement):
                path = self._path_of(module, importer)
                if not path or path == importer or (name and name not in self._may_assign(path)):
                    continue
                literals = self._read(path)
                if name:
                    literals = {local: literals[name]} if name in literals else {}
                else:
                    literals = {f"{local}.{key}": value for key, value in literals.items()}
                for key, value in literals.items():
                    constants[key] = _moved(value, statement)
        return constants

    def _path_of(self, module: str, importer: str) -> str:
        """Return the path of a module among those given; "" if none or several may be meant."""
        candidates = self._paths.get(module.rpartition(".")[2], [])
        if not candidates:
            return ""
        relative = module.replace(".", "/")
        folder = importer.rpartition("/")[0]
        beside = f"{folder}/{relative}" if folder else relative
        for path in candidates:
            if path in (f"{beside}.py", f"{beside}/__init__.py"):
                return path
        ending = [
            p
            for p in candidates
            if f"/{p}".endswith((f"/{relative}.py", f"/{relative}/__init__.py"))
        ]
        return ending[0] if len(ending) == 1 else ""

    def _may_assign(self, path: str) -> frozenset[str]:
        if path not in self._assigned:
            self._assigned[path] = frozenset(_ASSIGNED.findall(self._text(path)))
        return self._assigned[path]

    def _text(self, path: str) -> str:
        """Return the text of a module; "" if it is too long, or cannot be read."""
        try:
            text = read_source(path).text
        except (OSError, ValueError):
            return ""  # its own finding says what is wrong with it
        return text if len(text) <= MAX_MODULE_CHARS else ""

    def _read(self, path: str) -> dict[str, ast.expr]:
        if path not in self._literals:
            self._literals[path] = {}
            if self._may_assign(path):
                with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
                    tree = parse_without_warnings(self._text(path))
                    self._literals[path] = top_level_literals(tree)
        return self._literals[path]


def _top_level_imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    for statement in tree.body:
        blocks = [statement, *(statement.body if isinstance(statement, (ast.Try, ast.If)) else [])]
        for inner in blocks:
            if isinstance(inner, (ast.Import, ast.ImportFrom)):
                yield inner


def _imports(statement: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str, str]]:
    """Yield module, imported name ("" for the module itself) and local name."""
    for alias in statement.names:
        local = alias.asname or alias.name
        if isinstance(statement, ast.Import) or statement.module is None:
            yield alias.name, "", local
        elif alias.name != "*":
            yield statement.module, alias.name, local
            yield f"{statement.module}.{alias.name}", "", local


def _moved(value: ast.expr, statement: ast.stmt) -> ast.expr:
    """Return a copy of an expression that stands where the statement does."""
    copied = ast.parse(ast.unparse(value), mode="eval").body
    for node in ast.walk(copied):
        if isinstance(node, (ast.expr, ast.keyword)):
            ast.copy_location(node, statement)
    return copied
