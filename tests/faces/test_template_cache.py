"""Compiled templates are kept beside the templates, as modules are, and used while they are right."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import jinja2
import pytest

from allaboard.faces.report.template_cache import TemplateCache


class Counting(jinja2.Environment):
    """Counts what it compiles."""

    compiled = 0

    def compile(self, *given, **named):  # type: ignore[no-untyped-def]
        self.compiled += 1
        return super().compile(*given, **named)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    (tmp_path / "options.py").write_text("trim_blocks = False")
    (tmp_path / "page.html").write_text("{{ 1 + n }}")
    return tmp_path


def render(folder: Path) -> tuple[str, int]:
    """The page by a new environment, and how many templates that compiled."""
    cache = TemplateCache(folder, folder / "options.py")
    environment = Counting(loader=jinja2.FileSystemLoader(folder), bytecode_cache=cache)
    return environment.get_template("page.html").render(n=1), environment.compiled


def test_a_template_is_compiled_once(folder: Path) -> None:
    assert render(folder) == ("2", 1)
    assert render(folder) == ("2", 0)
    [kept] = (folder / "__pycache__").iterdir()
    assert kept.name == f"page.{sys.implementation.cache_tag}.pyc"


def test_it_is_compiled_again_once_it_or_the_options_have_changed(folder: Path) -> None:
    render(folder)
    (folder / "page.html").write_text("{{ 2 + n }}")
    assert render(folder) == ("3", 1)
    (folder / "options.py").write_text("trim_blocks = True")
    assert render(folder) == ("3", 1)
    assert render(folder) == ("3", 0)


@pytest.mark.parametrize("left", [b"", b"half a f", b"j2\x80\x02K\x05."])
def test_a_broken_file_is_written_anew(folder: Path, left: bytes) -> None:
    render(folder)
    [kept] = (folder / "__pycache__").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(left or whole[:-20])
    assert render(folder) == ("2", 1)
    assert kept.read_bytes() == whole


def test_nothing_is_written_where_python_writes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert render(folder) == render(folder) == ("2", 1)
    assert not (folder / "__pycache__").exists()


def test_a_place_that_cannot_be_written_costs_only_time(folder: Path) -> None:
    (folder / "__pycache__").write_text("no folder")
    assert render(folder) == render(folder) == ("2", 1)


def test_pythonpycacheprefix_is_heeded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = folder / "elsewhere"
    monkeypatch.setattr(sys, "pycache_prefix", os.fspath(elsewhere))
    assert render(folder) == ("2", 1)
    assert render(folder) == ("2", 0)
    assert not (folder / "__pycache__").exists() and list(elsewhere.rglob("*.pyc"))
