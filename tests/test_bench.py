"""What the measurements take from allaboard is there: they run seldom, and are changed by nobody's tests."""

from __future__ import annotations

import ast
import importlib
from importlib.util import find_spec
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"


@pytest.mark.parametrize("file", sorted(BENCH.rglob("*.py")), ids=lambda f: f.name)
def test_every_name_is_there(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("allaboard"):
            continue
        assert node.module is not None
        module = importlib.import_module(node.module)
        for name in node.names:
            there = hasattr(module, name.name) or find_spec(f"{node.module}.{name.name}")
            assert there, f"{file.name}: no {name.name} in {node.module}"
