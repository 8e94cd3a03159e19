"""`allaboard run` as a person meets it: exit codes, logs, bad input, signals, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jsonschema
import pytest

from allaboard.facts import Report
from allaboard.report.json_schema import json_schema_of

RUN = [sys.executable, "-m", "allaboard", "run"]


class Done:
    """A run that has ended."""

    def __init__(self, process: subprocess.CompletedProcess[bytes], folder: Path) -> None:
        self.code = process.returncode
        self.out = process.stdout.decode(errors="replace")
        self.err = process.stderr.decode(errors="replace")
        self.folder = folder

    @property
    def report(self) -> dict[str, object]:
        found = json.loads((self.folder / "run" / "report.json").read_text())
        assert isinstance(found, dict)
        return found


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Done]:
    def start(script: str, *options: str, arguments: tuple[str, ...] = (), n: int = 2) -> Done:
        file = tmp_path / "train.py"
        file.write_text(script)
        command = [*RUN, "-n", str(n), "--run-dir", str(tmp_path / "run"), "--grace", "2", *options]
        process = subprocess.run(
            [*command, str(file), *arguments], capture_output=True, timeout=60, check=False
        )
        return Done(process, tmp_path)

    return start


@pytest.fixture(autouse=True)
def nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    mark = f"left-behind-{tmp_path.name}-{os.getpid()}"
    monkeypatch.setenv("MARK", mark)
    yield
    for _ in range(200):
        if not leftovers(mark, tmp_path):
            return
        time.sleep(0.05)
    assert leftovers(mark, tmp_path) == []


def leftovers(mark: str, folder: Path) -> list[str]:
    """Processes that carry the mark, and black boxes of the run in this folder."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"MARK={mark}".encode() in environ.read_bytes().split(b"\0"):
                found.append(environ.parent.name)
        except OSError:
            continue
    journal = folder / "run" / "journal.jsonl"
    for line in journal.read_text().splitlines() if journal.exists() else ():
        entry = json.loads(line)
        if entry["kind"] == "worker" and Path(entry["boxes"]).exists():
            found.append(entry["boxes"])
    return found


def usage(*words: str, **more: object) -> str:
    """The message of a run that is refused with exit code 2."""
    done = subprocess.run([*RUN, *words], capture_output=True, timeout=30, check=False, **more)  # type: ignore[call-overload]
    assert done.returncode == 2, done.stderr
    text = done.stderr.decode()
    assert isinstance(text, str)
    assert "Traceback" not in text
    return text


def test_every_worker_gets_what_every_framework_asks_for(run: Callable[..., Done]) -> None:
    names = "RANK LOCAL_RANK WORLD_SIZE MASTER_ADDR MASTER_PORT OMP_NUM_THREADS JAX_PROCESS_ID"
    done = run(
        f"import os, json\nprint({{n: os.environ[n] for n in {names.split()}}})\n"
        "print(json.loads(os.environ['TF_CONFIG'])['task'])"
    )
    assert done.code == 0
    assert "[1] {'RANK': '1', 'LOCAL_RANK': '1', 'WORLD_SIZE': '2'" in done.out
    assert "'OMP_NUM_THREADS': '1', 'JAX_PROCESS_ID': '1'" in done.out
    assert "[0] {'type': 'worker', 'index': 0}" in done.out


def test_logs_are_whole_in_one_file_a_rank(run: Callable[..., Done]) -> None:
    done = run(
        "import sys; print('out'); print('err', file=sys.stderr); print('no newline', end='')"
    )
    kept = (done.folder / "run/logs/worker-1.log").read_text()
    assert kept.startswith(("out\n", "err\n"))
    assert kept.count("no newline") == 1
    assert "[1] out" in done.out and "[1] no newline" in done.out and "[1] err" in done.err


def test_the_report_keeps_its_published_schema(run: Callable[..., Done]) -> None:
    done = run("import sys; raise ValueError('x' * 5000)", "--report", "/dev/null")
    assert done.code == 1
    jsonschema.validate(done.report, json_schema_of(Report))
    assert done.report["outcome"] == "failed"
    assert done.report["workers"][0]["exit_code"] == 1  # type: ignore[index]
    assert [f["rule"] for f in done.report["findings"]] == ["EXIT002"]  # type: ignore[attr-defined]
    assert {w["rank"] for w in done.report["findings"][0]["who"]} == {0, 1}  # type: ignore[index]


def test_one_failure_of_an_undistributed_script_lets_the_other_finish(
    run: Callable[..., Done],
) -> None:
    done = run(
        "import os, time\nif os.environ['RANK'] == '0': os._exit(5)\ntime.sleep(1); print('done')"
    )
    assert done.code == 1 and "[1] done" in done.out
    assert [f["rule"] for f in done.report["findings"]] == ["EXIT003"]  # type: ignore[attr-defined]


def test_the_last_words_of_a_worker_are_told(run: Callable[..., Done]) -> None:
    done = run("import sys; print('fatal: licence expired', file=sys.stderr); sys.exit(3)", n=1)
    assert "fatal: licence expired [its last line]" in done.err


def test_the_run_folder_is_private(run: Callable[..., Done]) -> None:
    assert run("pass").folder.joinpath("run").stat().st_mode & 0o777 == 0o700


def test_fifty_megabytes_without_a_newline(run: Callable[..., Done]) -> None:
    done = run("import sys\nfor _ in range(50): sys.stdout.write('x' * 1_000_000)", n=1)
    assert done.code == 0
    assert (done.folder / "run/logs/worker-0.log").stat().st_size == 50_000_000


def test_a_long_line_stays_whole_beside_the_other_stream(run: Callable[..., Done]) -> None:
    script = (
        "import os\n"
        "for i in range(50):\n"
        "    os.write(1, b'x' * 6000)\n"
        "    os.write(2, b'beside\\n')\n"
        "os.write(1, b'\\n')\n"
    )
    done = run(script, n=1)
    lines = (done.folder / "run/logs/worker-0.log").read_text().splitlines()
    assert lines.count("x" * 300_000) == 1 and lines.count("beside") == 50


def test_a_member_under_a_launcher_has_its_own_rank_in_front(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('hello')\n")
    member = {"RANK": "3", "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}
    done = subprocess.run(
        [*RUN, "--run-dir", str(tmp_path / "run"), str(script)],
        env={**os.environ, **member},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "[3] hello\n", done.stderr


def test_what_a_version_does_not_offer_is_told_and_is_no_alarm(
    tmp_path: Path, run: Callable[..., Done]
) -> None:
    for name, text in (
        ("torch/__init__.py", "__version__ = '1.0'\n"),
        ("torch/optim/__init__.py", ""),
        ("torch/optim/optimizer.py", ""),
        ("torch/distributed/__init__.py", ""),
        ("torch/distributed/distributed_c10d.py", ""),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    done = run("import torch.optim.optimizer, torch.distributed.distributed_c10d\n")
    assert done.code == 0 and done.report["findings"] == []
    optim = "this version has no register_optimizer_step_post_hook"
    assert f"not seen: what torch.optim does, in worker 0, worker 1: {optim}" in done.err
    assert "not seen: what torch.distributed.distributed_c10d does" in done.err
    groups = "this version has no _world: whether calls of all ranks match is not known"
    assert f"not seen: what torch.distributed does, in worker 0, worker 1: {groups}" in done.err
    unseen = done.report["unseen"]
    assert isinstance(unseen, list) and len(unseen) == 3


def test_bytes_that_are_no_text_and_control_characters(run: Callable[..., Done]) -> None:
    done = run(r"import sys; sys.stdout.buffer.write(b'\xff\xfe\x00 ok \x1b[2J\x07\n')", n=1)
    assert done.code == 0 and "\x1b[2J" not in done.out and " ok " in done.out
    assert (done.folder / "run/logs/worker-0.log").read_bytes() == b"\xff\xfe\x00 ok \x1b[2J\x07\n"


def test_a_script_that_closes_its_output_or_all_its_files(run: Callable[..., Done]) -> None:
    done = run("import os, sys, time\nsys.stdout.close(); os.closerange(3, 4096); time.sleep(0.5)")
    assert done.code == 0 and done.report["findings"] == []


def test_children_of_a_script_end_with_it(run: Callable[..., Done]) -> None:
    script = (
        "import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(300)\n"
    )
    assert run(script).code == 0  # the fixture sees that nothing is left


def test_sigint_is_passed_on_and_the_exit_code_says_so(tmp_path: Path) -> None:
    code, text = interrupted(
        tmp_path, signal.SIGINT, "import time; print('up', flush=True)\ntime.sleep(300)"
    )
    assert code == 130 and "KeyboardInterrupt" in text


def test_sigterm_lets_a_job_write_its_checkpoint(tmp_path: Path) -> None:
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('checkpoint', flush=True), sys.exit(0)))\n"
        "print('up', flush=True)\ntime.sleep(300)"
    )
    code, text = interrupted(tmp_path, signal.SIGTERM, script)
    assert code == 143 and text.count("checkpoint") == 2


def test_a_job_that_will_not_end_is_killed_after_the_grace(tmp_path: Path) -> None:
    script = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('up', flush=True)\ntime.sleep(300)"
    )
    began = time.monotonic()
    code, _ = interrupted(tmp_path, signal.SIGTERM, script)
    assert code == 143 and time.monotonic() - began < 20


def test_usr1_goes_to_the_workers(tmp_path: Path) -> None:
    script = (
        "import signal, sys\nsignal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))\n"
        "print('up', flush=True)\nsignal.pause()"
    )
    code, _ = interrupted(tmp_path, signal.SIGUSR1, script)
    assert code == 0


def test_nothing_outlives_an_agent_that_is_killed(tmp_path: Path) -> None:
    script = "import os, time\nos.fork()\nprint('up', flush=True)\ntime.sleep(300)"
    code, _ = interrupted(tmp_path, signal.SIGKILL, script)
    assert code == -signal.SIGKILL  # the fixture sees that nothing is left


def interrupted(tmp_path: Path, number: int, script: str) -> tuple[int, str]:
    """Starts two workers, sends the signal when both are up, and returns code and output."""
    file = tmp_path / "train.py"
    file.write_text(script)
    output = tmp_path / "output"
    with output.open("wb") as sink:
        process = subprocess.Popen(
            [*RUN, "-n", "2", "--run-dir", str(tmp_path / "run"), "--grace", "1", str(file)],
            stdout=sink,
            stderr=subprocess.STDOUT,
            # A caller that ignores SIGINT (`make test &`) hands that down, and it is obeyed.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        deadline = time.monotonic() + 20
        while output.read_bytes().count(b"up") < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        code = process.wait(30)
    return code, output.read_text()


def test_a_full_disk_under_the_run_folder(tmp_path: Path, run: Callable[..., Done]) -> None:
    if os.getuid() != 0:
        pytest.skip("not on this machine: needs root to mount a small file system")
    small = tmp_path / "run"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], check=True)
    try:
        done = run("for n in range(20000): print('line', n)")
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert done.code == 0
    assert "[1] line 19999" in done.out
    assert "No space left on device" in done.err and "Traceback" not in done.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-n", "2", "no_such.py"], "no such script: no_such.py"),
        (["env", "python", "x.py"], "env is a command: allaboard run -- env python x.py"),
        (
            ["-n", "2", "timeout", "9", "python"],
            "timeout is a command: allaboard run -n 2 -- timeout 9 python",
        ),
        (["-n", "0", "x.py"], '-n expects a number from 1 to 4096, got "0"'),
        (["-n", "two", "x.py"], '-n expects a number from 1 to 4096, got "two"'),
        (["-n", "2"], "no script"),
        (["-n", "2", "/bin/true"], "is not a Python script"),
        (["-n", "2", "/tmp"], "is a folder"),
        (["--on-hang", "explode", "x.py"], '--on-hang expects report or stop, got "explode"'),
        (
            ["--env", "NOVALUE", __file__],
            '--env expects NAME=VALUE, as --env NCCL_DEBUG=INFO; got "NOVALUE"',
        ),
        (["--run-dir", "/proc/nope", __file__], "--run-dir /proc/nope"),
        (["--report", "/no/such/folder/r.json", __file__], "--report /no/such/folder"),
        (["--", "no-such-command-here"], "no such command"),
        (["--"], "nothing to run after --"),
        (
            ["--no-such-option", __file__],
            "unknown option --no-such-option; see: allaboard run --help",
        ),
        (["--timeout=-3", __file__], '--timeout expects a number of seconds, 0 or more, got "-3"'),
    ],
)
def test_bad_input_is_refused_with_the_value_and_the_remedy(words: list[str], says: str) -> None:
    assert says in " ".join(usage(*words).split())


def test_a_near_miss_of_a_name_is_offered(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")
    assert "did you mean train.py?" in usage("-n", "2", "trian.py", cwd=tmp_path)


def test_a_command_of_an_environment_that_is_not_activated_is_offered(tmp_path: Path) -> None:
    said = usage("--", Path(sys.executable).name, env={**os.environ, "PATH": str(tmp_path)})
    assert f"give {sys.executable}" in " ".join(said.split())


def test_a_script_is_offered_before_the_command_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "env.py").write_text("")
    assert "did you mean env.py?" in usage("-n", "2", "env", cwd=tmp_path)


@pytest.mark.alone
def test_the_start_is_not_slow(run: Callable[..., Done]) -> None:
    """A generous bound; the figure itself is measured in bench/."""
    began = time.monotonic()
    run("print('hi')")
    assert time.monotonic() - began < 5
