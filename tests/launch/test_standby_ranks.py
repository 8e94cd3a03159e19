"""Processes that have done the imports of a rank, and become it in the next round."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from allaboard.launch.serving import standby
from allaboard.launch.standby_ranks import may_become

RUN = [sys.executable, "-m", "allaboard", "run", "-n", "2", "--grace", "2"]
FRAMEWORK = """
import os
BY_SCRIPT = os.environ.get("BY_SCRIPT")
AS_RANK = os.environ["RANK"]
os.environ["BY_LIBRARY"] = "1"
"""
SCRIPT = """
import json, os, sys, time
from pathlib import Path
os.environ["BY_SCRIPT"] = os.environ["RANK"] + "x"
was_imported = "jax" in sys.modules
import jax
import neighbour
import jax.late
del os.environ["BY_SCRIPT"]
round_, rank = os.environ["ALLABOARD_ROUND"], os.environ["RANK"]
here = Path({here!r})
CHANGES = ("ALLABOARD_PID", "ALLABOARD_ROUND", "ALLABOARD_STDOUT", "TORCHELASTIC_RESTART_COUNT",
           "MASTER_PORT", "JAX_COORDINATOR_ADDRESS", "TF_CONFIG")
state = dict(
    argv=sys.argv, orig_argv=sys.orig_argv, path=sys.path, main=sorted(sys.modules["__main__"].__dict__),
    file=__file__, code=sys._getframe().f_code.co_filename, name=__name__, package=__package__,
    environment={{k: v for k, v in os.environ.items() if k not in CHANGES}},
    jax=[jax.BY_SCRIPT, jax.AS_RANK], is_main=sys.modules["__main__"].__dict__ is globals(),
    buffered=sys.stdout.line_buffering, stdin=sys.stdin.read(),
    pid=os.environ["ALLABOARD_PID"] == str(os.getpid()),
)
part = here / f"{{round_}}-{{rank}}.part"
part.write_text(json.dumps([was_imported, state, os.environ["MASTER_PORT"]]))
part.rename(here / f"{{round_}}-{{rank}}")
member = sys.modules["_allaboard_probe.member"]
# The other worker is ended once this one has failed.
until = time.monotonic() + 30
while rank == "1" and not (here / f"{{round_}}-0").exists() and time.monotonic() < until:
    time.sleep(0.01)
while round_ == "0":
    member.step()
    time.sleep(0.05)
    if rank == "1" and (here / "go").exists():
        os.kill(os.getpid(), 9)
if rank == "1":
    raise ValueError("of the script")
"""


def install(folder: Path, name: str, text: str) -> None:
    file = folder / "site-packages" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def run(
    tmp_path: Path, awaited: str, words: list[str], *options: str, size: int = 2
) -> tuple[str, list[list[Any]]]:
    """Run the job; let a rank of round 0 die once allaboard has said what is awaited. Its output, and what
    each rank of each round has written."""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site-packages")}
    environment.pop("OMP_NUM_THREADS", None)
    command = [*RUN, "--run-dir", str(tmp_path / "run"), "--on-failure", "restart"]
    command += ["--standby", str(size), "--max-restarts", "1", *options, *words]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=tmp_path,
        env=environment,
    )
    assert process.stdout is not None
    output = ""
    for line in process.stdout:
        output += line
        if awaited in line:
            (tmp_path / "go").touch()
    process.stdout.close()
    process.wait(60)
    files = [tmp_path / f"{round_}-{rank}" for round_ in (0, 1) for rank in (0, 1)]
    return output, [json.loads(f.read_text()) for f in files]


@pytest.mark.parametrize("way", ["script", "module"])
def test_the_next_round_finds_everything_as_a_new_python_has_it(tmp_path: Path, way: str) -> None:
    install(tmp_path, "jax/__init__.py", FRAMEWORK)
    install(tmp_path, "jax/late.py", "")
    (tmp_path / "neighbour.py").write_text("")
    (tmp_path / "train.py").write_text(SCRIPT.format(here=str(tmp_path)))
    words = ["./train.py", "--a", "b"] if way == "script" else ["-m", "train", "--a", "b"]
    output, told = run(tmp_path, "2 processes stand by", words)
    assert "2 of 2 workers stood by and have their imports done" in output
    assert [was_imported for was_imported, _, _ in told] == [False, False, True, True]
    for rank in (0, 1):
        assert told[2 + rank][1] == told[rank][1]
        assert told[rank][1]["jax"] == [f"{rank}x", str(rank)]
    assert told[0][2] != told[2][2], "the ports are new"
    trace = output[output.rindex("Traceback (most recent call last)") :]
    assert "ValueError: of the script" in trace and "standby.py" not in trace
    assert "standby.py" not in (tmp_path / "run/report.json").read_text()


def test_a_module_that_the_script_has_from_elsewhere_is_not_taken_from_the_library(
    tmp_path: Path,
) -> None:
    install(tmp_path, "jax/__init__.py", FRAMEWORK + "import tools\n")
    install(tmp_path, "jax/late.py", "")
    install(tmp_path, "tools.py", "")
    (tmp_path / "tools.py").write_text("")
    (tmp_path / "neighbour.py").write_text("")
    (tmp_path / "train.py").write_text(SCRIPT.format(here=str(tmp_path)))
    output, told = run(tmp_path, "a process that was to stand by differs", ["train.py"], size=1)
    assert f"tools is {tmp_path}/tools.py in the script" in output
    assert "0 of 2 workers stood by" in output
    assert [was_imported for was_imported, _, _ in told] == [False] * 4


def test_what_a_script_sets_between_its_imports_is_not_guessed(tmp_path: Path) -> None:
    install(tmp_path, "first.py", "import os; os.environ['BY_FIRST'] = '1'")
    install(tmp_path, "second.py", "")
    (tmp_path / "task.py").write_text(
        "import os, sys; print([n in sys.modules for n in ('first', 'second')], os.environ.get('S'))"
    )
    library = tmp_path / "site-packages"
    modules = [[n, str(library / f"{n}.py")] for n in ("first", "second")]
    shown = []
    for later in ({"BY_FIRST": "1"}, {"BY_FIRST": "1", "BY_SCRIPT": "1"}):
        record = {"environment": {"S": "1"}, "modules": modules, "early": 1, "later": later}
        (tmp_path / "record").write_text(json.dumps(record))
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        process = subprocess.Popen(
            [sys.executable, standby.__file__, str(fifo), "task.py", str(tmp_path / "record")],
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(library)},
        )
        fifo.write_text(json.dumps({"worker": 0, "words": ["task.py"], "environment": {}}))
        shown.append(process.communicate(timeout=60)[0].strip())
        fifo.unlink()
    assert shown == ["[True, True] None", "[True, False] None"]


def test_only_what_is_read_at_init_may_differ() -> None:
    prepared = {"RANK": "1", "OMP_NUM_THREADS": "1", "MASTER_PORT": "1"}
    assert may_become(prepared, {**prepared, "MASTER_PORT": "2", "ALLABOARD_ROUND": "1"})
    assert not may_become(prepared, {**prepared, "OMP_NUM_THREADS": "2"})
    assert not may_become(prepared, {**prepared, "CUDA_VISIBLE_DEVICES": "0"})
    assert not may_become(prepared, {"RANK": "1", "MASTER_PORT": "1"})
