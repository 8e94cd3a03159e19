"""What may be imported before a script runs, by its text."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from allaboard.launch.serving import script_imports


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("torch", "numpy", "heavy"):
        package = tmp_path / "lib/site-packages" / name
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "lib/site-packages")])
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.chdir(own)
    return own


def write(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        file = folder / f"{name.replace('__', '/')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)


def names(*words: str) -> list[str]:
    return [name for name, _, _ in script_imports.certain_steps(list(words))]


def test_installed_modules_in_the_order_of_the_text_and_nothing_of_the_standard_library(
    folder: Path,
) -> None:
    write(
        folder,
        train="'''doc'''\nimport os, torch.nn as nn\nfrom numpy import linalg\nimport absent\n",
    )
    assert names("train.py") == ["torch.nn", "numpy"]


def test_what_own_modules_import_stands_in_their_place(folder: Path) -> None:
    write(
        folder,
        train="import models\nfrom pack import part\nimport heavy\n",
        models="from pack.other import y\n",
        pack__init="",
        pack__part="import torch\nfrom . import other\n",
        pack__other="from numpy import x\ndef f():\n    import heavy\n",
    )
    (folder / "pack/init.py").rename(folder / "pack/__init__.py")
    assert names("train.py") == ["numpy", "torch", "heavy"]
    write(folder, pack__main="import heavy\nfrom .part import z\n")
    (folder / "pack/main.py").rename(folder / "pack/__main__.py")
    assert names("-m", "pack") == ["heavy", "torch", "numpy"]
    assert names("-m", "pack.part") == ["torch", "numpy"]
    assert names("-m", "torch.tool") == ["torch"], "what runs is not imported, its package is"


def test_files_that_import_each_other_are_read_once(folder: Path) -> None:
    write(folder, train="import other\n", other="import train\nimport torch\n")
    assert names("train.py") == ["torch"]


@pytest.mark.parametrize(
    "statement",
    [
        "import os\nos.environ['OMP_NUM_THREADS'] = str(4)",
        "import os\nos.environ.update(A='1')",
        "import os\ndel os.environ['A']",
        "import sys\nsys.path.insert(0, '..')",
        "from own import setup\nsetup()",
        "for x in y: pass",
        "if x:\n    import torch",
        "threads = configure()",
    ],
)
def test_nothing_is_imported_after_what_may_change_the_environment(
    folder: Path, statement: str
) -> None:
    write(folder, train=f"import numpy\n{statement}\nimport torch\n", own="def setup(): pass\n")
    assert names("train.py") == ["numpy"]


@pytest.mark.parametrize(
    "statement",
    [
        "import os\nrank = int(os.environ.get('RANK', 0))",
        "import logging\nlogging.basicConfig()\nLOG = logging.getLogger(__name__)",
        "try:\n    import absent\nexcept ImportError:\n    absent = None",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import heavy",
        "class Model:\n    size = 3\nX: int = 5",
        "import gc\ngc.set_threshold(50_000, 20, 1_000)",
    ],
)
def test_definitions_and_known_calls_do_not_end_it(folder: Path, statement: str) -> None:
    write(folder, train=f"{statement}\nimport torch\n")
    assert [n for n in names("train.py") if n != "absent"] == ["torch"]


def test_literal_settings_are_told_in_their_place(folder: Path) -> None:
    write(folder, train="import os\nos.environ['A'] = '1'\nimport torch\n")
    assert script_imports.certain_steps(["train.py"]) == [("A", "1", False), ("torch", None, False)]


@pytest.mark.parametrize("text", ["", "x = (", "import (", "\0"])
def test_what_is_not_python_tells_nothing(folder: Path, text: str) -> None:
    write(folder, train=text)
    assert names("train.py") == []
    assert names("absent.py") == []
