"""The face of `allaboard run`: arguments in, workers started, exit code out.

It parses its arguments with argparse rather than with what the other commands use: the workers
start before anything heavy is loaded, and a larger library would be most of the time until then.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from allaboard.hosts.described import Described

MOST = 4096
"""Workers on one host; far beyond what one host can train, and within its file limits."""
FLAGS = ("--observe", "--chief", "--evaluator", "--verbose", "-v", "-h", "--help")
"""Options that take no value."""


def parser() -> argparse.ArgumentParser:
    """The options of `run`, those before the script."""
    made = argparse.ArgumentParser(
        prog="allaboard run",
        usage="allaboard run [--ps P] [-n N] [OPTIONS] SCRIPT [ARGS...] | -m MODULE [ARGS...] | "
        "-- COMMAND [ARGS...]",
        description="Start a training job, see who is there, watch it, and say what is wrong while "
        "it is wrong.",
        epilog="Exit code: 0 all trained, 1 a worker failed, 2 wrong use, 3 the roll call failed, "
        "4 ended for a hang, 130 interrupted.",
        allow_abbrev=False,
    )
    add = made.add_argument
    add("-n", metavar="N", help="start N workers on this host")
    add("--ps", metavar="P", help="start P parameter servers too, each task with its TF_CONFIG")
    add("--chief", action="count", default=0, help="with --ps: a chief besides the workers")
    add("--evaluator", action="count", default=0, help="with --ps: an evaluator too")
    add(
        "--ps-server",
        default="auto",
        choices=("auto", "script"),
        help="who runs the server loop of a ps: auto (allaboard, where the script makes no Server)",
    )
    add("-m", metavar="MODULE", dest="module", help="run a module instead of a script")
    add(
        "--timeout",
        metavar="S",
        type=seconds,
        help="how long a member that was never heard of is waited for (60); given where others "
        "start the members, it ends the job instead of only telling",
    )
    add(
        "--timeout-hard",
        metavar="S",
        type=seconds,
        help="the same for one that is alive and does not come (no bound)",
    )
    add("--grace", metavar="S", default=30.0, type=seconds, help="between SIGTERM and SIGKILL (30)")
    add(
        "--observe", action="store_true", help="only watch: hold nobody, signal nobody, end nothing"
    )
    add("--on-hang", default="report", choices=("report", "stop"), help="about a job that hangs")
    add(
        "--hang-after",
        metavar="S",
        default=600.0,
        type=seconds,
        help="with stop: how long without progress where no cause is certain (600)",
    )
    add("--run-dir", metavar="DIR", type=Path, help="for logs, journal and report")
    add("--report", metavar="FILE.json", type=Path, help="write the report there too")
    add("--env", metavar="K=V", action="append", default=[], help="a variable for every worker")
    add(
        "--coordinator",
        metavar="HOST:PORT",
        default="",
        help="where the agents of several hosts meet (the framework's own address)",
    )
    add("--secret-file", metavar="FILE", type=Path, help="the job's secret, the same on every host")
    add("-v", "--verbose", action="store_true", help="all evidence of a finding")
    return made


def split(arguments: Sequence[str]) -> tuple[list[str], list[str], bool]:
    """The options, what they are followed by, and whether that stood behind ``--``: then it is run
    as it is, not as a script. What follows the script is the script's own."""
    at = 0
    while at < len(arguments):
        word = arguments[at]
        if word == "--":
            return list(arguments[:at]), list(arguments[at + 1 :]), True
        if not word.startswith("-") or word == "-":
            break
        attached = "=" in word or (word[:2] in ("-n", "-m") and len(word) > 2)
        at += 1 if attached or word in FLAGS else 2
        if word.startswith("-m"):
            break
    return list(arguments[:at]), list(arguments[at:]), False


def main(arguments: Sequence[str]) -> int:
    """Starts, watches, and returns the exit code."""
    options, words, dashes = split(arguments)
    given = parser().parse_args(options)
    try:
        return _run(given, words, dashes)
    except Refused as error:
        sys.stderr.write(f"allaboard run: {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130  # before the agent listens; the reaper ends what was started once we are gone


def _run(given: argparse.Namespace, words: list[str], dashes: bool) -> int:
    from allaboard.launch.local import CannotStart, Plan, launch, new_job_id

    roles = _roles(given, words, dashes)
    size = len(roles[0]) or _size(given.n)
    joined = None if roles[0] else _joined(given)
    if dashes and given.module is not None:
        _usage("-m MODULE and -- COMMAND exclude each other; write -- python -m MODULE")
    report = given.report
    if report is not None and not report.absolute().parent.is_dir():
        _usage(f"--report {report}: there is no folder {report.parent}; mkdir -p {report.parent}")
    job = new_job_id()
    command = _command(words, given.module, dashes)
    variables = _variables(given.env)
    plan = Plan(
        command=command,
        size=size,
        given=given.n is not None or bool(roles[0]),
        gate=_gate(given, joined is not None, bool(roles[0])),
        run_dir=run_folder(given.run_dir, job),
        job=job,
        extra=variables,
        tasks=roles[0],
        served=roles[1],
    )
    try:
        started = launch(plan)
    except CannotStart as error:
        _usage(str(error))
    # The workers are starting; only now is loaded what it takes to watch them.
    from allaboard.agent.main import run
    from allaboard.agent.notes import Subject
    from allaboard.agent.options import Options

    return run(
        started,
        Options(
            timeout=60.0 if given.timeout is None else given.timeout,
            timeout_hard=given.timeout_hard,
            grace=given.grace,
            observe=given.observe,
            stop_on_hang=given.on_hang == "stop",
            hang_after=given.hang_after,
            report=report,
            wrapped=dashes and given.n is None,
            verbose=given.verbose,
            joined=joined,
            strict=given.timeout is not None,
            secret=secret(given.secret_file),
            coordinator=coordinator(given.coordinator),
            subject=Subject(
                script=_script(words, given.module, dashes),
                variables={**os.environ, **variables} if joined is not None else {},
            ),
        ),
    )


class Refused(Exception):
    """What the user asked cannot be done; the message says why and what to type."""


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text}: seconds, 0 or more")
    return value


def _size(n: str | None) -> int:
    if n is None:
        return 1
    if not n.isdecimal() or not 1 <= int(n) <= MOST:
        _usage(f"-n {n}: a number of workers from 1 to {MOST}; try: allaboard run -n 4 train.py")
    return int(n)


def _joined(given: argparse.Namespace) -> Described | None:
    """Without -n an environment that describes a cluster means members that somebody else starts."""
    from allaboard.hosts.described import described

    return None if given.n is not None else described({**os.environ, **_variables(given.env)})


def _gate(given: argparse.Namespace, joined: bool, roles: bool) -> str:
    """Who is held at the roll call."""
    if given.observe:
        return ""
    return "all" if given.n is not None or roles else "cluster" if joined else "local"


def secret(file: Path | None) -> bytes:
    """From the file, else from ALLABOARD_SECRET; empty where there is none."""
    if file is None:
        return os.environ.get("ALLABOARD_SECRET", "").encode()
    try:
        text = file.read_bytes().strip()
    except OSError as error:
        _usage(f"--secret-file {file}: {error.strerror}")
    if not text:
        _usage(f"--secret-file {file} is empty; make one: openssl rand -hex 32 > {file}")
    return text


def coordinator(address: str) -> str:
    host, _, port = address.rpartition(":")
    if address and not (host and port.isdigit() and 0 < int(port) < 65536):
        _usage(f"--coordinator {address}: wants HOST:PORT, e.g. --coordinator node0:29400")
    return address


def _script(words: list[str], module: str | None, dashes: bool) -> str:
    """The Python file that the command runs, as far as its words tell; else ""."""
    if module is not None:
        path = Path(*module.split("."))
        files = [path.with_suffix(".py"), path / "__main__.py"]
    else:
        named = [w for w in words if w.endswith(".py")] if dashes else words[:1]
        files = [Path(w) / "__main__.py" if Path(w).is_dir() else Path(w) for w in named]
    return next((str(f) for f in files if f.is_file()), "")


def _roles(
    given: argparse.Namespace, words: list[str], dashes: bool
) -> tuple[tuple[tuple[str, int], ...], frozenset[int]]:
    """The tasks of a job with parameter servers, and those that allaboard serves; else nothing."""
    if given.ps is None:
        for option, asked in (("--chief", given.chief), ("--evaluator", given.evaluator)):
            if asked:
                _usage(
                    f"{option} goes with --ps P; try: allaboard run --ps 1 -n 2 {option} train.py"
                )
        return (), frozenset()
    from allaboard.roles.script import read
    from allaboard.roles.tasks import WrongRoles, served, tasks

    if dashes:
        _usage("--ps starts SCRIPT or -m MODULE; a command after -- starts its own processes")
    script = f"-m {given.module}" if given.module else words[0] if words else "train.py"
    reading = read(Path(words[0]) if words and given.module is None else None)
    try:
        found = tasks(given.ps, given.n, given.chief, given.evaluator, reading, script)
    except WrongRoles as error:
        _usage(str(error))
    return found, served(found, given.ps_server, reading)


def _command(words: list[str], module: str | None, as_it_is: bool) -> list[str]:
    from allaboard.launch.local import python

    if as_it_is:
        if not words:
            _usage("nothing to run after --; try: allaboard run -- torchrun train.py")
        if shutil.which(words[0]) is None:
            _usage(f"no such command: {words[0]}; give its path, or see: command -v {words[0]}")
        return words
    if module is not None:
        return [python(), "-m", module, *words]
    if not words:
        _usage("no script; try: allaboard run -n 4 train.py")
    script = Path(words[0])
    if not script.exists():
        _usage(f"no such script: {script} (in {Path.cwd()})" + _near(script))
    if script.is_dir() and not (script / "__main__.py").exists():
        _usage(f"{script} is a folder without a __main__.py; give the script in it")
    if script.is_file() and not _looks_like_python(script):
        _usage(
            f"{script} is not a Python script; to run any program: "
            f"allaboard run -- {' '.join(words[:3])}"
        )
    return [python(), *words]


def _near(script: Path) -> str:
    import difflib

    folder = script.parent if script.parent.is_dir() else Path()
    names = [p.name for p in folder.glob("*.py")]
    close = difflib.get_close_matches(script.name, names, n=1, cutoff=0.5)
    return f"; did you mean {folder / close[0]}?" if close else ""


def _looks_like_python(script: Path) -> bool:
    """By its name, else by its beginning: source has no NUL byte and names no other interpreter."""
    try:
        with script.open("rb") as file:
            head = file.read(4096)
    except OSError as error:
        _usage(f"{script} cannot be read: {error.strerror}")
    if b"\0" in head and not head.startswith(b"PK"):
        return script.suffix == ".pyc"
    first = head.split(b"\n", 1)[0]
    return b"python" in first if first.startswith(b"#!") else True


def _variables(pairs: list[str]) -> dict[str, str]:
    for pair in pairs:
        name, equals, _ = pair.partition("=")
        if not equals or not name:
            _usage(f"--env {pair}: wants NAME=VALUE, e.g. --env NCCL_DEBUG=INFO")
    return dict(pair.split("=", 1) for pair in pairs)


def run_folder(wanted: Path | None, job: str) -> Path:
    """The folder of this run: what the user named, else .allaboard/JOB here, else a temporary one."""
    import tempfile

    if wanted is not None:
        folder = wanted.absolute()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            (folder / "logs").mkdir(exist_ok=True, mode=0o700)
            (folder / "journal.jsonl").open("ab").close()
        except OSError as error:
            _usage(f"--run-dir {wanted}: {error.strerror}; name a folder that you may write to")
        return folder
    for base in (
        Path.cwd() / ".allaboard",
        Path(tempfile.gettempdir()) / f"allaboard-{os.getuid()}",
    ):
        try:
            base.mkdir(exist_ok=True, mode=0o700)
            ignore = base / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n")
            (base / job).mkdir(mode=0o700)
            (base / job / "logs").mkdir(mode=0o700)
        except OSError:
            continue
        return base / job
    return _usage("no folder for the run: neither here nor in the temporary folder; give --run-dir")


def _usage(message: str) -> NoReturn:
    raise Refused(message)
