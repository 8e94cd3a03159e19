"""The tutorials, followed word by word: scripts are saved, commands typed, the output compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from shell_pages import commands_of, files_of, type_command, unlike

ROOT = Path(__file__).parents[2]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


@pytest.mark.zoo
@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_can_be_followed(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.stem == "tensorflow":  # followed as where no other framework is installed
        monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests/tensorflow_alone"))
    for name, text in files_of(page).items():
        (tmp_path / name).write_text(text)
    commands = commands_of(page)
    assert len(commands) >= 2
    for typed in commands:
        printed = type_command(typed, tmp_path, 240)
        assert unlike(typed.shown, printed) == [], printed[-6000:]
