"""Plug-ins of other packages are found by their entry points, and only asked for where there are any."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

RULE = '''"""Somebody else's rule.

## Why it matters
It is in another package.

## What to do
Nothing.
"""

from allaboard.contracts import Rule
from allaboard.facts import Claim, ConfigFacts, Stage, sample_config_facts


def check(facts):
    yield Claim(summary="it was asked", evidence=(), fix="nothing")


RULE = Rule(stage=Stage.CONFIG, reads=ConfigFacts, check=check, fires_on={}, silent_on={}, since="1",
            unstaged="a test")
'''


def rules(*path: Path) -> str:
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(map(str, path))}
    words = [sys.executable, "-m", "allaboard", "rules"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def test_a_rule_of_another_package(tmp_path: Path) -> None:
    info = tmp_path / "others-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[allaboard.rules]\ncfg900_elsewhere = their_rules\n")
    (tmp_path / "their_rules.py").write_text(RULE)
    assert "CFG900" in rules(tmp_path)
    assert "CFG900" not in rules()
