"""The interpreter's start: the user's program runs as if the probe were not there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from probed import START, Program, fake_torch

LOADED = "import sys; print('_allaboard_probe.member' in sys.modules)\n"


def test_it_starts_and_tells_who_it_is(any_program: Program) -> None:
    ended = any_program.run(LOADED + "print(sys.version.split()[0])")
    assert (ended.code, ended.err) == (0, "")
    loaded, version = ended.out.split()
    assert loaded == "True"
    box = any_program.box(ended.pid)
    seen = box.read_snapshot()
    assert (seen.phase, box.identity.python) == (8, version)
    assert box.identity.argv == [str(any_program.folder / "script.py")]


def test_a_hooked_framework_works_as_before(any_program: Program) -> None:
    fake_torch(any_program.folder)
    ended = any_program.run(
        "import torch.distributed as dist, inspect\n"
        "from torch.distributed import all_reduce\n"
        "assert all_reduce is dist.all_reduce\n"
        "print(dist.all_reduce(7), dist.all_reduce.__name__, inspect.signature(dist.all_reduce))\n"
    )
    assert (ended.out, ended.code) == ("7 all_reduce (tensor)\n", 0), ended.err
    seen = any_program.read(ended.pid)
    assert seen.notes.pop("events")  # by what they are noted
    assert (seen.ops, seen.op, seen.notes) == (1, None, {"torch": "2.99"})


def test_a_collective_shows_while_it_lasts(program: Program) -> None:
    fake_torch(program.folder)
    process = program.start(
        "import sys, torch.distributed as dist\n"
        "def inside():\n    print('in', flush=True)\n    sys.stdin.readline()\n    raise OSError('x')\n"
        "try:\n    dist.all_reduce(inside)\n"
        "except OSError:\n    print('out', flush=True)\n    sys.stdin.readline()\n"
    )
    assert process.stdout and process.stdin
    assert process.stdout.readline() == "in\n"
    box = program.box(process.pid)
    inside = box.read_snapshot().op
    assert inside is not None and (inside.name, inside.number) == ("all_reduce", 1)
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "out\n"
    assert box.read_snapshot().op is None


def test_a_shadowed_sitecustomize_still_runs(any_program: Program) -> None:
    (any_program.folder / "sitecustomize.py").write_text(
        "import sys\nVALUE = 42\nprint('site', __name__, __file__ is not None)\n"
    )
    ended = any_program.run("import sitecustomize; print(sitecustomize.VALUE)\n" + LOADED)
    assert (ended.out, ended.code) == ("site sitecustomize True\n42\nTrue\n", 0), ended.err


def test_a_shadowed_sitecustomize_that_raises_is_reported_as_ever(program: Program) -> None:
    (program.folder / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    ended = program.run(LOADED)
    assert (ended.out, ended.code) == ("True\n", 0)
    assert "Error in sitecustomize" in ended.err and "ValueError: mine" in ended.err


def test_the_folder_leaves_sys_path_and_stays_in_the_environment(any_program: Program) -> None:
    ended = any_program.run(
        "import sys, os\nprint([p for p in sys.path if 'probe' in p and p.endswith('start')])\n"
        "print(os.environ['PYTHONPATH'].split(os.pathsep)[0])\n"
    )
    assert ended.out == f"[]\n{START}\n"


@pytest.mark.parametrize("broken", ["raise RuntimeError\n", "def (\n", "import no_such_thing\n"])
@pytest.mark.parametrize("part", ["bootstrap.py", "member.py", "adapters/jax.py"])
def test_a_broken_probe_does_no_harm(program: Program, part: str, broken: str) -> None:
    copy = program.folder / "probe"
    shutil.copytree(START.parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / part).write_text(broken)
    path = f"{copy / 'start'}:{program.folder}"
    ended = program.run("print('runs')", before=f"export PYTHONPATH={path}")
    assert (ended.out, ended.err, ended.code) == ("runs\n", "", 0)


@pytest.mark.parametrize(
    "folder", ["/nonexistent", "/proc/self/fdinfo", "/dev/null"], ids=["absent", "proc", "file"]
)
def test_without_room_for_a_box_the_program_runs(program: Program, folder: str) -> None:
    program.environment = {"ALLABOARD_BOX": folder}
    ended = program.run("print('runs')")
    assert (ended.out, ended.err, ended.code) == ("runs\n", "", 0)


def test_a_full_file_system_costs_the_box_and_not_the_program(program: Program) -> None:
    ended = program.run("print('runs')", before="ulimit -f 8")
    assert (ended.out, ended.err, ended.code) == ("runs\n", "", 0)
    assert program.members() == []
    assert not list(program.boxes.glob("*.new"))


def test_few_file_descriptors_are_enough(program: Program) -> None:
    ended = program.run("print('runs')", before="ulimit -n 64")
    assert (ended.out, ended.err, ended.code) == ("runs\n", "", 0)
    assert program.box(ended.pid).signum > 0


def test_a_working_folder_that_is_gone_does_no_harm(any_program: Program) -> None:
    (any_program.folder / "gone").mkdir()
    (any_program.folder / "sitecustomize.py").write_text("print('site')\n")
    ended = any_program.run(
        "import os, runpy, sys\n"
        "sys.modules.pop('_allaboard_probe')\n"
        f"sys.path[:0] = [{str(START)!r}, '']\n"
        "os.chdir('gone'); os.rmdir(os.getcwd())\n"
        f"runpy.run_path({str(START / 'sitecustomize.py')!r})\n"
        f"print(sys.path[0] == '', {str(START)!r} in sys.path)\n"
    )
    assert (ended.out, ended.err, ended.code) == ("site\nsite\nTrue False\n", "", 0)


def test_without_a_job_nothing_is_hooked(program: Program) -> None:
    program.environment = {"ALLABOARD_BOX": ""}
    ended = program.run("import sys; print([type(f).__name__ for f in sys.meta_path])")
    assert "Watch" not in ended.out and ended.code == 0


@pytest.mark.parametrize("flags", ["-I", "-S", "-E"])
def test_it_stays_away_where_python_was_told_so(program: Program, flags: str) -> None:
    script = f'exec "{sys.executable}" {flags} -c "print(1)"'
    ended = program.run("", before=script)
    assert (ended.out, ended.err, ended.code) == ("1\n", "", 0)
    assert program.members() == []


def test_an_interpreter_without_importlib_reads_on_in_silence(tmp_path: Path) -> None:
    """What very old interpreters meet: they have no importlib.machinery."""
    (tmp_path / "importlib").mkdir()
    (tmp_path / "importlib" / "__init__.py").write_text("raise ImportError('none')\n")
    told = subprocess.run(
        [sys.executable, "-c", "print('runs')"],
        env={"PYTHONPATH": f"{START}:{tmp_path}", "ALLABOARD_BOX": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stdout == "runs\n" and told.returncode == 0


def test_sitecustomize_holds_no_syntax_that_old_interpreters_refuse() -> None:
    text = (START / "sitecustomize.py").read_text()
    assert "->" not in text.replace("# type: (str) -> None", "").replace("# type: () -> None", "")
    assert 'f"' not in text and "from __future__" not in text


# -- output ---------------------------------------------------------------------------------------


def test_only_our_pipe_is_buffered_by_the_line(program: Program) -> None:
    ours = program.run(
        "import sys; print(sys.stdout.line_buffering)",
        before="export ALLABOARD_STDOUT=$(stat -Lc %i /proc/$$/fd/1)",
    )
    assert ours.out == "True\n"
    other = program.run(
        "import sys; print(sys.stdout.line_buffering)", before="export ALLABOARD_STDOUT=1"
    )
    assert other.out == "False\n"


def test_a_line_on_our_pipe_comes_at_once(program: Program) -> None:
    process = program.start(
        "import sys; print('first'); sys.stdin.readline()\n",
        before="export ALLABOARD_STDOUT=$(stat -Lc %i /proc/$$/fd/1)",
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "first\n"
    assert process.poll() is None


def test_a_program_without_standard_output_is_watched_too(program: Program) -> None:
    ended = program.run("raise ValueError('unseen')", before="exec >&-")
    assert ended.code == 1
    raised = program.read(ended.pid).raised
    assert raised is not None and raised.message == "unseen"


@pytest.mark.parametrize("how", ["sys.stdout.close()", "os.close(1)", "sys.stdout = None"])
def test_a_program_may_close_its_output(program: Program, how: str) -> None:
    body = f"import os, sys\nprint('said', flush=True)\n{how}\n"
    plain = subprocess.run(
        [sys.executable, "-c", body], capture_output=True, text=True, check=False
    )
    ended = program.run(body)
    assert (ended.out, ended.code) == (plain.stdout, plain.returncode)
    assert program.read(ended.pid).phase == 8
