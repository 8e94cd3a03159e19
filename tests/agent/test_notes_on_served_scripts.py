"""A coordinator's script without servers is right where allaboard runs the servers."""

from __future__ import annotations

from pathlib import Path

from allaboard.check.runtime_notes import script_notes
from shell_pages import files_of

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "parameter-servers.md"


def test_the_coordinator_of_the_tutorial_lacks_nothing_under_run(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(files_of(TUTORIAL)["train.py"])
    assert [f.rule for f in script_notes(str(script))] == ["CODE050"]
    assert script_notes(str(script), are_servers_started=True) == []
