"""The snapshot process imports nothing of ours: what it prints has to fit the event that the agent reads."""

from __future__ import annotations

import ast
from pathlib import Path

from allaboard.launch.serving import ps_snapshotter
from allaboard.protocol.events import SnapshotTaken


def test_the_message_has_the_fields_of_the_event() -> None:
    tree = ast.parse(Path(ps_snapshotter.__file__).read_text())
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    messages = [{k.arg for k in c.keywords} for c in calls if ast.unparse(c.func) == "print_event"]
    assert set(SnapshotTaken.__struct_fields__) in messages
    assert messages.count({"trouble"}) + 1 == len(messages)
