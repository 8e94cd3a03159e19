"""`allaboard check FOLDER`: it finds what is meant for training, and passes over everything else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WRONG = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 2}}'
RIGHT = WRONG.replace('"index": 2', '"index": 1')
JOB = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x\n"


def check(folder: Path, *words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "allaboard", "check", *(words or (".",))],
        capture_output=True, text=True, cwd=folder, timeout=60,
        env={"PATH": os.environ["PATH"], "COLUMNS": "200"},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def write(folder: Path, name: str, text: str | bytes) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What lies around in a repository, none of it of interest."""
    write(tmp_path, "README.md", "hello world\n")
    write(tmp_path, "package.json", '{"name": "x"}')
    write(tmp_path, "results.json", '{"rows": [1, 2]}')
    write(tmp_path, "tsconfig.json", '// comment\n{"a": 1,}')
    write(tmp_path, "data.bin", b"\0\1\2")
    write(tmp_path, "weights.json", b"\0\1\2")
    write(tmp_path, "values.yaml", "replicas: 3\n")
    write(tmp_path, "notes", "a line of prose\n")
    write(tmp_path, "empty.py", "")
    for skipped in (".git", ".venv", "node_modules", "my-env", "__pycache__"):
        write(tmp_path, f"{skipped}/tf_config.json", WRONG)
    write(tmp_path, "my-env/pyvenv.cfg", "home = /usr\n")
    os.mkfifo(tmp_path / "pipe.json")
    return tmp_path


def test_a_folder_with_nothing_of_interest_is_silent(folder: Path) -> None:
    code, out, err = check(folder)
    assert (code, err) == (0, "")
    assert "error" not in out and "tf_config" not in out


def test_what_is_wrong_is_found_at_any_depth(folder: Path) -> None:
    write(folder, "deploy/node0/tf_config.json", WRONG)
    write(folder, ".github/workflows/train.yml", "on: push\njobs: {}\n")
    write(folder, "hosts/hostfile", "a slots=2\na slots=2\n")
    code, out, _ = check(folder)
    assert code == 1 and "deploy/node0/tf_config.json:1:" in out and "CFG004" in out
    assert "hosts/hostfile" in out
    assert check(folder, "deploy")[0] == 1 and check(folder, "hosts")[0] != 2


def test_a_script_without_a_suffix_is_known_by_its_beginning(folder: Path) -> None:
    batch = "#SBATCH --nodes=2\nexport MASTER_ADDR=localhost\nsrun torchrun --nnodes=2 train.py\n"
    write(folder, "job", f"#!/bin/bash\n{batch}")
    write(folder, "other", f"\n{batch}")
    _, out, _ = check(folder)
    assert "job:" in out and "other:" in out


def test_what_cannot_be_read_is_a_note_unless_it_is_meant_for_training(folder: Path) -> None:
    write(folder, "old.py", "print 'x'\n")
    write(folder, "template.yaml", "{{ if x }}\na: [\n")
    code, out, err = check(folder)
    assert code == 0 and "old.py: not judged: cannot be read as Python" in err
    assert "2 files in all were not judged, see -v" in err and "old.py" not in out
    assert "template.yaml: not judged: is a template" in check(folder, ".", "-v")[2]
    write(folder, "k8s/job.yaml", JOB)
    write(folder, "tf_config.json", WRONG[:-3])
    code, out, _ = check(folder)
    assert code == 1 and "k8s/job.yaml:" in out and "tf_config.json:1:" in out


def test_files_of_a_folder_are_no_job_but_files_that_are_named_are(folder: Path) -> None:
    write(folder, "n0/tf_config.json", RIGHT)
    write(folder, "n1/tf_config.json", RIGHT)
    assert check(folder)[0] == 0
    code, out, _ = check(folder, "n0/tf_config.json", "n1/tf_config.json")
    assert code == 1 and "ENV003" in out


def test_a_named_file_in_a_folder_is_judged_once(folder: Path) -> None:
    write(folder, "tf_config.json", WRONG)
    assert check(folder, ".", "tf_config.json")[1] == check(folder, "tf_config.json", ".")[1]
    assert check(folder, ".", "tf_config.json")[1].count("CFG004") == 1
    write(folder, "old.py", "print 'x'\n")
    assert check(folder, ".", "old.py")[0] == 1


def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    code, _, err = check(tmp_path, "absent")
    assert code == 2 and "allaboard check: absent: no such file" in err
