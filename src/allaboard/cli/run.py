"""`allaboard run`: the main job."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand


class RunCommand(TyperCommand):
    """Remembers whether the command stood behind `--`: then it is run as it is, not as a script."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        rest = super().parse_args(ctx, args)
        positional = len(ctx.params.get("command") or ())
        before = given[: len(given) - positional]
        ctx.meta["allaboard.dashes"] = bool(before) and before[-1] == "--"
        return rest


SETTINGS: dict[str, Any] = {
    "cls": RunCommand,
    "context_settings": {"allow_interspersed_args": False, "ignore_unknown_options": False},
}
HANG = {"report": False, "stop": True}


def command(
    ctx: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="SCRIPT [ARGS]... | -- COMMAND [ARGS]...", show_default=False),
    ] = None,
    n: Annotated[
        int | None, typer.Option("-n", metavar="N", help="Start N workers on this host.")
    ] = None,
    module: Annotated[
        str | None, typer.Option("-m", metavar="MODULE", help="Run a module instead of a script.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds to wait for a member that was never heard of.")
    ] = 60.0,
    timeout_hard: Annotated[
        float | None,
        typer.Option(help="Seconds to wait even for a member that is alive and does not come."),
    ] = None,
    grace: Annotated[float, typer.Option(help="Seconds between SIGTERM and SIGKILL.")] = 30.0,
    observe: Annotated[
        bool, typer.Option("--observe", help="Only watch: hold nobody, signal nobody, end nothing.")
    ] = False,
    on_hang: Annotated[
        str, typer.Option(metavar="report|stop", help="What to do about a job that hangs.")
    ] = "report",
    hang_after: Annotated[
        float, typer.Option(help="With stop: seconds without progress where no cause is certain.")
    ] = 600.0,
    run_dir: Annotated[
        Path | None, typer.Option(help="Folder for logs, journal and report.", show_default=False)
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the report there too.")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="K=V", help="A variable for every worker.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="All evidence.")] = False,
) -> None:
    """Start a training job, see who is there, watch it, and say what is wrong while it is wrong."""
    from allaboard.launch.local import CannotStart, Plan, launch, new_job_id

    dashes = bool(ctx.meta.get("allaboard.dashes"))
    wrapped = dashes and n is None
    if n is not None and n < 1:
        _usage(f"-n {n}: a job needs at least one worker; try: allaboard run -n 4 train.py")
    if on_hang not in HANG:
        _usage(f"--on-hang {on_hang}: is report or stop")
    for name, value in (("--timeout", timeout), ("--grace", grace), ("--hang-after", hang_after)):
        if not 0 <= value < 1e9:
            _usage(f"{name} {value:g}: seconds, 0 or more")
    if dashes and module is not None:
        _usage("-m MODULE and -- COMMAND exclude each other; write -- python -m MODULE")
    job = new_job_id()
    words = _command(command or [], module, dashes)
    plan = Plan(
        command=words,
        size=n or 1,
        given=n is not None,
        gate="" if observe else "all" if n is not None else _gate_without_n(),
        run_dir=_run_dir(run_dir, job),
        job=job,
        extra=_variables(env or []),
    )
    if report is not None and not report.absolute().parent.is_dir():
        _usage(f"--report {report}: there is no folder {report.parent}; mkdir -p {report.parent}")
    try:
        started = launch(plan)
    except CannotStart as error:
        _usage(str(error))
    from allaboard.agent.main import run
    from allaboard.agent.options import Options

    options = Options(
        timeout=timeout,
        timeout_hard=timeout_hard,
        grace=grace,
        observe=observe,
        stop_on_hang=HANG[on_hang],
        hang_after=hang_after,
        report=report,
        wrapped=wrapped,
        verbose=verbose,
    )
    raise typer.Exit(run(started, options))


def _gate_without_n() -> str:
    """Without -n an environment that describes a cluster means members that somebody else starts."""
    described = ("TF_CONFIG", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
    return "" if any(v in os.environ for v in described) else "local"


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


def _run_dir(wanted: Path | None, job: str) -> Path:
    """The folder of this run: what the user named, else .allaboard/JOB here, else a temporary one."""
    import tempfile

    if wanted is not None:
        folder = wanted.absolute()
        try:
            (folder / "logs").mkdir(parents=True, exist_ok=True, mode=0o700)
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
    typer.echo(f"allaboard run: {message}", err=True)
    raise typer.Exit(2)
