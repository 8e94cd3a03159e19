"""The script that lists a framework's messages about distribution which no reader hears."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "unheard_wordings.py"
sys.path.insert(0, str(SCRIPT.parent))
framework_wordings = importlib.import_module("framework_wordings")
SPEC = importlib.util.spec_from_file_location("unheard_wordings", SCRIPT)
assert SPEC is not None and SPEC.loader is not None
unheard_wordings = importlib.util.module_from_spec(SPEC)
sys.modules["unheard_wordings"] = unheard_wordings
SPEC.loader.exec_module(unheard_wordings)

PYTHON = """
def meet(rank, size):
    if rank >= size:
        raise ValueError(f"rank {rank} is not among the ranks: world size {size} must be larger")
    logger.error("the coordinator at %s was not reachable", rank)
    logger.info("all ranks failed to come, but this is no error log")
    raise RuntimeError("Timed out initializing process group in store based barrier on rank: {}, for key: "
                       "{} (world_size={}, worker_count={}, timeout={})".format(rank, "k", size, 1, 2))
"""
CPP = """
void f() {
  TORCH_CHECK(false, "process group of rank ", rank, " could not be "
              "split in two");
  LOG(INFO) << "the coordinator was lost";
}
"""


def wordings(folder: Path) -> dict[str, str]:
    """Return the messages of a folder, with what hears them."""
    return {w.text: unheard_wordings.heard_as(w) for w in framework_wordings.find_wordings(folder)}


def test_messages_that_are_raised_or_logged_as_errors_are_listed(tmp_path: Path) -> None:
    (tmp_path / "meet.py").write_text(PYTHON)
    (tmp_path / "group.cpp").write_text(CPP)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "t.py").write_text(PYTHON.replace("among", "within"))
    heard = wordings(tmp_path)
    barrier = next(text for text in heard if "store based barrier" in text)
    assert heard.pop(barrier).startswith("JOIN")
    assert heard == {
        "process group of rank 7 could not be split in two": "quoted",
        "rank 7 is not among the ranks: world size 7 must be larger": "exception",
        "the coordinator at 7 was not reachable": "",
    }


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        (
            "launch.go",
            'if err != nil {\n    return fmt.Errorf("launcher %q is not found: %w", name, err)\n}\n',
            "launcher 7 is not found: 7",
        ),
        (
            "step.c",
            'error("%s: step on node %s failed: %m",\n      __func__, name);\n',
            "7: step on node 7 failed: 7",
        ),
        (
            "help-launch.txt",
            "# a comment\n[no-agent]\nLaunching agents\ncould not be found on %s.\n#\n[other]\nfine\n",
            "Launching agents\ncould not be found on 7.",
        ),
        (
            "errnames.txt",
            "**lost:peer lost\n**lost %s:the connection to peer %s was lost\n",
            "the connection to peer 7 was lost",
        ),
    ],
)
def test_other_languages_are_read(tmp_path: Path, name: str, source: str, expected: str) -> None:
    (tmp_path / name).write_text(source)
    assert list(wordings(tmp_path)) == [expected]


def test_a_shared_library_s_strings_are_read(tmp_path: Path) -> None:
    message = b"rank %d left the process group, which was closed before"
    (tmp_path / "lib.so").write_bytes(b"\x7fELF\0" + message + b"\0\x01\x02\0short\0")
    assert list(wordings(tmp_path)) == ["rank 7 left the process group, which was closed before"]


@pytest.mark.parametrize(
    ("text", "relevant"),
    [
        ("not all ranks of the process group came: timed out", True),
        ("Input tensor must have rank 2, but got 3", False),
        ("all ranks have come to the barrier of the group", False),
    ],
)
def test_only_failures_of_several_processes_count(text: str, relevant: bool) -> None:
    assert framework_wordings.is_relevant(text) is relevant


def test_a_target_that_is_not_there_is_named() -> None:
    run = subprocess.run(
        [sys.executable, SCRIPT, "no_such_framework"], capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 2
    assert run.stderr == "no_such_framework: neither a folder nor an installed package\n"
