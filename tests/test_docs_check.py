"""docs/check.md: its files are written, its commands run, and what they print is what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs/check.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)


def test_the_page_tells_the_truth(tmp_path: Path) -> None:
    # Without COLUMNS: as in a pipe.
    env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    ran = 0
    for language, name, content in BLOCK.findall(PAGE.read_text()):
        if name:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(content)
        if language != "console":
            continue
        for part in re.split(r"^\$ ", content, flags=re.M)[1:]:
            command, _, expected = part.partition("\n")
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.stdout == expected, done.stderr
            ran += 1
    assert ran >= 5


def test_its_yaml_is_yaml() -> None:
    import yaml

    blocks = [text for kind, _, text in BLOCK.findall(PAGE.read_text()) if kind == "yaml"]
    assert len(blocks) == 2 and all(yaml.safe_load(b) for b in blocks)


def test_the_repository_is_a_pre_commit_hook() -> None:
    import yaml

    (hook,) = yaml.safe_load((PAGE.parents[1] / ".pre-commit-hooks.yaml").read_text())
    assert hook["id"] == "allaboard-check" and hook["entry"] == "allaboard check"
    taken = (
        "tf_config.json",
        "node0/tf_config.json",
        "hostfile",
        "run.sbatch",
        "x/manifests/a.yml",
        "k8s/job.yaml",
        "deploy/train/job.yaml",
        "docker-compose.yml",
        "compose.gpu.yaml",
        "scripts/launch.sh",
        "train.py",
        "notebooks/train.ipynb",
    )
    assert all(re.search(hook["files"], name) for name in taken)
    assert not any(
        re.search(hook["files"], name)
        for name in ("README.md", "values.yaml", "a.json", "src/config.yaml")
    )
