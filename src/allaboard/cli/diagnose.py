"""`allaboard diagnose PATH|PID…`: what is left of a job, or a job that hangs now, started by others."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from allaboard.facts import Diagnosis, HostLook

AGAIN = 2.0
"""Seconds between two looks at a job in which the first found nothing."""
_HOST = re.compile(r"[A-Za-z0-9_][\w.@-]*")
"""A host as ssh(1) takes it; one that begins with a dash would be an option."""
_THERE = re.compile(rf"({_HOST.pattern}):(\d{{1,10}})")


def command(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH|PID|HOST:PID]...",
            help="Run folders, logs, stack dumps, Flight Recorder traces, or folders of them. Or processes: "
            "PID on this host, HOST:PID on another one, over ssh. With --hosts: words from the command "
            "lines of the ranks to look at there (default: all ranks).",
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print whole stacks and all evidence.")
    ] = False,
    output: Annotated[str, typer.Option("--format", help="Output format: text or json.")] = "text",
    hosts: Annotated[
        str, typer.Option(metavar="H1,H2", help="Find the ranks on these hosts, over ssh.")
    ] = "",
    ssh: Annotated[
        str, typer.Option(metavar="CMD", help="The ssh client, with its options.")
    ] = "ssh",
    remote: Annotated[
        str,
        typer.Option(metavar="CMD", help="The command that starts allaboard on the other hosts."),
    ] = "",
    bundle: Annotated[
        Path | None,
        typer.Option(
            metavar="OUT.tar.gz",
            help="Pack the diagnosis, logs and versions for a bug report, with secrets redacted.",
        ),
    ] = None,
    look: Annotated[bool, typer.Option("--look", hidden=True)] = False,
) -> None:
    """Find the cause of a job that hangs now, or that has failed, and the evidence for it.

    Give PIDs if the job hangs, or its logs, dumps and traces if it failed. It only looks: no process is
    paused or signalled. For a launcher (torchrun), the ranks that it started are looked at.
    Exit code: 0 nothing found, 1 findings, 2 usage error, or a PATH or PID that does not exist.
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
    asked = _asked(hosts, given)
    if asked:
        looks = _there(asked, ssh, remote)
    else:
        pids = [t for t in given if t.isdigit() and not Path(t).exists()]
        if pids and len(pids) < len(given):
            _usage("give paths or pids, not both; for a folder whose name is a number: ./123")
        looks = (_here(pids),) if pids else ()
        paths = [] if pids else [Path(t) for t in given]
    found = _live(looks) if looks else _left(paths)
    if looks and _unsaid(found, looks):
        looks, found = _again(looks, found, (lambda: _there(asked, ssh, remote)) if asked else None)
    from allaboard.formats.redaction import shown
    from allaboard.report.diagnosis import as_json, as_text
    from allaboard.report.plain_text import output_width

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    said = (
        as_json(found)
        if output == "json"
        else as_text(found, colour, verbose, output_width(sys.stdout.fileno()))
    )
    typer.echo(shown(said), nl=False)
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
    from allaboard.diagnosis.live.process_inspection import NoSuchProcessError, chosen, here

    try:
        return here(chosen(targets), targets)
    except NoSuchProcessError as error:
        _usage(str(error))


def _asked(hosts: str, targets: list[str]) -> dict[str, list[str]]:
    """What to ask of which other host; empty where all is here."""
    there = [_THERE.fullmatch(t) for t in targets if not Path(t).exists()]
    asked: dict[str, list[str]] = {}
    if not hosts and there and len(there) == len(targets) and all(there):
        for match in filter(None, there):
            asked.setdefault(match[1], []).append(match[2])
        return asked
    names = [h.strip() for h in hosts.split(",") if h.strip()]
    if hosts and (not names or any(not _HOST.fullmatch(h) for h in names)):
        _usage(f"--hosts {hosts}: it is a list of host names, as node1,node2")
    if hosts and any(t.isdigit() for t in targets):
        _usage(f"a pid is one host's: {names[0]}:{next(t for t in targets if t.isdigit())}")
    return dict.fromkeys(names, targets)


def _there(asked: dict[str, list[str]], ssh: str, remote: str) -> tuple[HostLook, ...]:
    from allaboard.diagnosis.live.remote_diagnosis import looks

    return looks(asked, ssh, remote or shlex.join([sys.executable, "-m", "allaboard"]))


def _live(looks: tuple[HostLook, ...], times: int = 1) -> Diagnosis:
    from allaboard.diagnosis.live.live_diagnosis import diagnosis

    return diagnosis(looks, times)


def _unsaid(found: Diagnosis, looks: tuple[HostLook, ...]) -> bool:
    """Whether all were seen, and nothing was found: what began meanwhile shows at the next look."""
    seen = not found.notes and not found.missing and not any(one.trouble for one in looks)
    return seen and not found.findings and sum(len(one.present) for one in looks) > 1


def _again(
    looks: tuple[HostLook, ...],
    found: Diagnosis,
    there: Callable[[], tuple[HostLook, ...]] | None,
) -> tuple[tuple[HostLook, ...], Diagnosis]:
    """A second look at the same processes; the first where one of them has ended meanwhile."""
    from allaboard.diagnosis.live.process_inspection import NoSuchProcessError, chosen, here

    typer.echo("allaboard diagnose: no finding at the first look; looking once more", err=True)
    time.sleep(AGAIN)
    pids = [str(p.member.who.pid) for one in looks for p in one.present]
    ended = [str(gone.pid) for one in looks for gone in one.departed]
    try:
        second = there() if there is not None else (here(chosen(pids), pids + ended),)
    except NoSuchProcessError:
        return looks, found
    return second, _live(second, times=2)


def _left(paths: list[Path]) -> Diagnosis:
    from allaboard.diagnosis.logs.diagnose_paths import of_paths
    from allaboard.diagnosis.logs.input_files import MissingInputError
    from allaboard.rules.engine.catalogue import catalogue

    try:
        return of_paths(paths, catalogue())
    except MissingInputError as error:
        _usage(str(error))
    except OSError as error:
        _usage(f"{error.filename}: {(error.strerror or str(error)).lower()}")


def _pack(
    out: Path, answers: dict[str, str], paths: list[Path], looks: tuple[HostLook, ...]
) -> None:
    from allaboard.diagnosis.logs.bundle import pack

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
