"""Every finding stands where its text does: inside of quotes, escapes, blocks, folds and literals."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from allaboard.check.collect import from_files
from allaboard.check.run_rules import judge_configuration
from allaboard.facts import Origin, Part
from allaboard.formats.shell.script import read_shell, with_inner_commands
from allaboard.formats.source_map import align_text

POD = """apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completions: 3
  parallelism: 3
  completionMode: Indexed
  template:
    spec:
      subdomain: train
      containers:
      - name: main
"""
CLUSTER = '{"cluster": {"worker": ["a:2222", "b"]}, "task": {"type": "worker", "index": 0}}'
CASES: dict[str, tuple[str, str, str]] = {
    "a single-quoted script": (
        "x.sh",
        "bash -c 'set -e\n torchrun --nnodes=two t.py'\n",
        "--nnodes",
    ),
    "a double-quoted script": (
        "x.sh",
        'ENV="x" bash -c "echo \\"hello\\"; torchrun --nnodes=two t.py"\n',
        "--nnodes",
    ),
    "a script in a script": (
        "x.sh",
        "bash -c \"echo \\$HOME; bash -c 'torchrun --nnodes=two t.py'\"\n",
        "--nnodes",
    ),
    "JSON in single quotes": ("x.sh", f"export TF_CONFIG='{CLUSTER}'\n", '"b"'),
    "JSON in double quotes": (
        "x.sh",
        'export TF_CONFIG="' + CLUSTER.replace('"', '\\"') + '"\n',
        '\\"b\\"',
    ),
    "a block of YAML": (
        "x.yaml",
        POD + "        command: [bash, -c]\n        args:\n        - |\n\n          set -e\n"
        "          torchrun --nnodes=two t.py\n",
        "--nnodes",
    ),
    "a fold of YAML": (
        "x.yaml",
        POD + "        command: [bash, -c]\n        args:\n        - >-\n          torchrun\n"
        "          --nproc-per-node=4 --nnodes=two t.py\n",
        "--nnodes",
    ),
    "a plain scalar on two lines": (
        "x.yaml",
        POD + "        command: [bash, -c, exec torchrun\n            --nnodes=two t.py]\n",
        "--nnodes",
    ),
    "double quotes in YAML": (
        "x.yaml",
        POD + '        command: ["bash", "-c", "echo \\"a\\"\\n torchrun --nnodes=two t.py"]\n',
        "--nnodes",
    ),
    "single quotes in YAML": (
        "x.yaml",
        POD + "        command: ['bash', '-c', 'echo ''a''; torchrun --nnodes=two t.py']\n",
        "--nnodes",
    ),
    "after a variable of the pod": (
        "x.yaml",
        POD + '        env: [{name: PORT, value: "29500"}]\n'
        "        command: [bash, -c, 'export P=$(PORT); torchrun --nnodes=two t.py']\n",
        "--nnodes",
    ),
    "JSON in a dict of Python": (
        "x.py",
        'import json, os\n\nWORKERS = ["a:2222",\n           "b"]\n'
        "os.environ['TF_CONFIG'] = json.dumps({\n    'cluster': {'worker': WORKERS},\n"
        "    'task': {'type': 'worker', 'index': 0}})\n",
        '"b"',
    ),
    "behind other letters": (
        "x.py",
        "import json, os\n"
        "é = 'ééé'; os.environ['TF_CONFIG'] = json.dumps({'cluster': {'worker': ['a:1', 'b']}, "
        "'task': {'type': 'worker', 'index': 0}})\n",
        "'b'",
    ),
    "a string of Python": (
        "x.py",
        "import os\nos.environ['TF_CONFIG'] = '''\n" + CLUSTER.replace(", ", ",\n") + "'''\n",
        '"b"',
    ),
    "an escaped string of Python": (
        "x.py",
        "import os\nos.environ['TF_CONFIG'] = \"" + CLUSTER.replace('"', '\\"') + '"\n',
        '\\"b\\"',
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_place_is_that_of_the_text(case: str, tmp_path: Path) -> None:
    name, text, wanted = CASES[case]
    path = tmp_path / name
    path.write_text(text)
    findings = judge_configuration(from_files([str(path)]), select=("CFG006", "CFG024"))
    assert findings, "no finding"
    for finding in findings:
        assert finding.where is not None
        line = text.split("\n")[finding.where.line - 1][finding.where.column - 1 :]
        # An escaped quote begins at the backslash, or behind it.
        assert line.startswith((wanted, wanted[1:])), f"{finding.where}: {line}"


def test_what_cannot_be_placed_is_at_its_beginning() -> None:
    (part,) = align_text("something else", "as it is written", 3, 7, "plain")
    assert part.position_in_file(1, 9) == (3, 7) and not part.literal
    origin = Origin(file="x", line=3, column=7, parts=(part,))
    assert origin.within(1, 5).column == 7


WORDS = st.text("ab 12\n\t\"'\\$", max_size=30).map(lambda t: "x" + t + "y")


@given(WORDS, WORDS)
def test_every_word_of_an_inner_script_is_where_it_says(before: str, after: str) -> None:
    """However it is quoted: each character that is not escaped stands at its place."""
    quoted = before.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$")
    text = f'bash -c "echo {quoted}; torchrun --nnodes=two t.py" {after!r}\n'
    for command in with_inner_commands(read_shell(text, "f").commands, "f"):
        for word in command:
            if word.text in ("torchrun", "--nnodes=two", "t.py"):
                line = text.split("\n")[word.origin.line - 1]
                assert line[word.origin.column - 1 :].startswith(word.text)


def test_parts_are_found_by_their_beginning() -> None:
    parts = (Part(1, 1, 5, 10), Part(1, 4, 5, 20, literal=False), Part(2, 1, 6, 3))
    origin = Origin(file="x", line=5, column=10, parts=parts)
    places = [origin.within(*p) for p in ((1, 3), (1, 9), (2, 2), (3, 4))]
    assert [(o.line, o.column) for o in places] == [(5, 12), (5, 20), (6, 4), (7, 4)]
