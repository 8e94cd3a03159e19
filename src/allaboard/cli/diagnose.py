"""`allaboard diagnose PATH|PID…`: what is left of a job, or a job that hangs now, started by others."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from allaboard.facts import Diagnosis, HostLook


def command(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH|PID]...",
            help="Run folders, logs, stack dumps, Flight Recorder traces, or folders of them; or "
            "processes on this host. With --hosts: pids there, or words of their command lines; all "
            "ranks where none is given.",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Whole stacks, all evidence.")
    ] = False,
    output: Annotated[str, typer.Option("--format", help="text or json.")] = "text",
    hosts: Annotated[
        str, typer.Option(metavar="H1,H2", help="Look at processes of these hosts, over ssh.")
    ] = "",
    ssh: Annotated[
        str, typer.Option(metavar="CMD", help="The ssh client, with its options.")
    ] = "ssh",
    remote: Annotated[
        str, typer.Option(metavar="CMD", help="How allaboard starts on the other hosts.")
    ] = "",
    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT.tar.gz",
            help="Pack it all for a bug report: the diagnosis, logs, versions; secrets redacted.",
        ),
    ] = None,
    look: Annotated[bool, typer.Option("--look", hidden=True)] = False,
) -> None:
    """Who is the cause, and what proves it: after the fact, or of processes that hang now.

    Looks only; pauses and signals nobody. A launcher (torchrun) stands for the ranks it started.
    Exit code 0 when nothing was found, 1 with findings, 2 for what is not there.
    """
    given = targets or []
    if output not in ("text", "json"):
        _usage(f"--format {output}: it is text or json")
    if look:
        _answer(given)
        return
    if not given and not hosts:
        _usage("give a run folder, logs or pids, or --hosts H1,H2 for all ranks there")
    paths: list[Path] = []
    looks: tuple[HostLook, ...] = ()
    if hosts:
        looks = _there(hosts, given, ssh, remote)
    else:
        pids = [t for t in given if t.isdigit() and not Path(t).exists()]
        if pids and len(pids) < len(given):
            _usage("give paths or pids, not both; for a folder whose name is a number: ./123")
        looks = (_here(pids),) if pids else ()
        paths = [] if pids else [Path(t) for t in given]
    found = _live(looks) if looks else _left(paths)
    from allaboard.report.diagnosis import as_json, as_text

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    typer.echo(as_json(found) if output == "json" else as_text(found, colour, verbose), nl=False)
    if bundle is not None:
        answers = {"diagnosis.txt": as_text(found, False, True), "diagnosis.json": as_json(found)}
        _pack(bundle, answers, paths, looks)
    if looks and all(one.trouble for one in looks):
        raise typer.Exit(2)
    raise typer.Exit(1 if found.findings else 0)


def _answer(targets: list[str]) -> None:
    """What another host's allaboard asks for."""
    import msgspec

    typer.echo(msgspec.json.encode(_here(targets)).decode())


def _here(targets: list[str]) -> HostLook:
    from allaboard.agent.outside import NoSuchProcess, chosen, here

    try:
        return here(chosen(targets))
    except NoSuchProcess as error:
        _usage(str(error))


def _there(hosts: str, targets: list[str], ssh: str, remote: str) -> tuple[HostLook, ...]:
    from allaboard.agent.elsewhere import looks

    names = [h.strip() for h in hosts.split(",") if h.strip()]
    odd = [h for h in names if h.startswith("-")]
    if odd or not names:
        _usage(f"--hosts {hosts}: it is a list of host names, as node1,node2")
    return looks(names, targets, ssh, remote or shlex.join([sys.executable, "-m", "allaboard"]))


def _live(looks: tuple[HostLook, ...]) -> Diagnosis:
    from allaboard.agent.live import diagnosis

    return diagnosis(looks)


def _left(paths: list[Path]) -> Diagnosis:
    from allaboard.catalogue import catalogue
    from allaboard.postmortem.exhibits import NothingThere
    from allaboard.postmortem.paths import of_paths

    try:
        return of_paths(paths, catalogue())
    except NothingThere as error:
        _usage(str(error))


def _pack(
    out: Path, answers: dict[str, str], paths: list[Path], looks: tuple[HostLook, ...]
) -> None:
    from allaboard.postmortem.bundle import pack

    try:
        told = pack(out, answers, paths, looks)
    except OSError as error:
        _usage(f"--bundle {out}: {(error.strerror or str(error)).lower()}")
    typer.echo(
        f"allaboard: packed {len(told)} files into {out}; look through it before you", err=True
    )
    typer.echo(f"  send it: tar -tzf {shlex.quote(str(out))}", err=True)


def _usage(said: str) -> NoReturn:
    typer.echo(f"allaboard diagnose: {said}", err=True)
    raise typer.Exit(2)
