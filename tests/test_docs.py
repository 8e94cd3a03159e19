"""What README and docs say can be typed, linked and looked up."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import textwrap
from functools import cache
from pathlib import Path

import pytest

from allaboard.cli import COMMANDS
from allaboard.contracts import Rule
from allaboard.drills.run_drill import all_drills
from allaboard.rules.engine.catalogue import RuleEntry, load_catalogue
from allaboard.rules.engine.evaluate import run_rules
from multihost_drills.run_host_drill import all_host_drills

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])
SAID = [(p, line) for p in PAGES for line in p.read_text().splitlines()]
COMMAND = re.compile(r"(?:^\$ |`)(allaboard [^`#]+)")
TYPED = sorted({m[1].strip() for _, line in SAID for m in COMMAND.finditer(line)})


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("typed", TYPED)
def test_commands_exist_with_their_options(typed: str) -> None:
    if "…" in typed or "OPTIONS" in typed or "[" in typed:
        typed = re.sub(r"\[[^]]*\]|…", "", typed)
    words = shlex.split(typed)[1:]
    if words[0].startswith("-"):
        return
    assert words[0] in COMMANDS
    said = _help(words[0])
    options = words[1 : words.index("--")] if "--" in words else words[1:]
    script = next((i for i, w in enumerate(options) if w.endswith(".py")), len(options))
    for option in (w for w in options[:script] if w.startswith("-")):
        assert option.partition("=")[0] in said, f"{typed}: no option {option}"
    for word in options:
        if word.endswith(".py") and "/" in word:
            assert (ROOT / word).exists(), f"{typed}: no {word}"


@cache
def _help(command: str) -> str:
    words = [sys.executable, "-m", "allaboard", command, "--help"]
    wide = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(words, capture_output=True, text=True, check=True, env=wide).stdout


def test_rules_and_drills_that_are_named_exist() -> None:
    codes = {e.code for e in load_catalogue().entries}
    named = {c for _, line in SAID for c in re.findall(r"\b(?!SHA)[A-Z]{2,4}\d{3}\b", line)}
    assert named <= codes
    drills = {d for _, line in SAID for d in re.findall(r"allaboard drill ([a-z][a-z0-9-]+)", line)}
    assert drills <= all_drills().keys()
    between = {
        d for _, line in SAID for d in re.findall(r"-m multihost_drills ([a-z][a-z0-9-]+)", line)
    }
    assert between <= all_host_drills().keys()


def test_every_command_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    assert [c for c in COMMANDS if f"`allaboard {c}" not in text] == []


def test_every_room_has_its_sentence() -> None:
    text = (ROOT / "docs" / "rooms.md").read_text()
    source = ROOT / "src" / "allaboard"
    rooms = {p.name + "/" for p in source.iterdir() if p.is_dir() and p.name != "__pycache__"}
    rooms |= {p.name for p in source.glob("*.py") if not p.name.startswith("__")}
    assert [room for room in sorted(rooms) if f"`{room}`" not in text] == []


def test_the_example_rule_for_contributors_is_one() -> None:
    (example,) = re.findall(
        r"^   ```python\n(.*?)^   ```$", (ROOT / "CONTRIBUTING.md").read_text(), re.M | re.S
    )
    written: dict[str, object] = {"__name__": "example"}
    exec(compile(textwrap.dedent(example), "CONTRIBUTING.md", "exec"), written)
    rule = written["RULE"]
    assert isinstance(rule, Rule)
    entry = RuleEntry("X001", "example", str(written["__doc__"]), rule)
    for facts, summary in rule.fires_on.values():
        assert [claim.summary for _, claim in run_rules(facts, [entry])] == [summary]
    for facts in rule.silent_on.values():
        assert list(run_rules(facts, [entry])) == []


def test_the_modules_that_the_rooms_name_exist() -> None:
    text = (ROOT / "docs" / "rooms.md").read_text()
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", text)
    homes = (ROOT / "src" / "allaboard", ROOT)
    assert len(named) > 20
    assert [path for path in named if not any((home / path).exists() for home in homes)] == []
