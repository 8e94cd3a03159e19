"""`allaboard diagnose PATH|PID…`: find out why a job hangs or has failed, from its processes or its logs."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.cli.commands import USAGE_EXIT_CODE
from allaboard.cli.standard_output import print_error, write_output
from allaboard.options.usage_error import UsageError

if TYPE_CHECKING:
    import argparse

    from allaboard.facts import Diagnosis, HostLook
    from allaboard.options.command_parser import CommandParser

SECOND_LOOK_DELAY_S = 2.0
"""Time between two looks at a job in which the first found nothing."""
STDIN_NAME = "-"
_HOST = re.compile(r"[A-Za-z0-9_][\w.@-]*")
"""A host as ssh(1) takes it; one that begins with a dash would be an option."""
_REMOTE_PID = re.compile(rf"({_HOST.pattern}):(\d{{1,10}})")


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments of `diagnose`."""
    import argparse

    parser.describe(
        "[OPTIONS] PATH|PID|HOST:PID|-...\n[OPTIONS] --hosts H1,H2 [WORD...]",
        "Find the cause of a job that hangs now, or that has failed, and the evidence for it.\n\n"
        "Give the PIDs if the job hangs, or its logs, dumps and traces if it failed. Nothing is paused or "
        "signalled. If you give the PID of a launcher (torchrun), the ranks that it started are examined.",
        "Exit code: 0 nothing found, 1 findings, 2 usage error, or a PATH or PID that does not exist.",
        "allaboard diagnose 4711",
        "allaboard diagnose logs/",
        "kubectl logs job/train | allaboard diagnose -",
        "allaboard diagnose --hosts node0,node1 train.py",
    )
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="PATH|PID|HOST:PID",
        help="run folders, logs, stack dumps, Flight Recorder traces, or folders of them; - reads standard "
        "input. Or processes: PID on this host, HOST:PID on another one, over ssh. With --hosts: words from "
        "the command lines of the ranks to examine there (default: all ranks)",
    )
    parser.complete_value("targets", "file")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="print whole stacks and all evidence"
    )
    parser.add_argument(
        "--format", default="text", choices=("text", "json"), help="output format (default: text)"
    )
    parser.add_argument(
        "--hosts", metavar="H1,H2", default="", help="find the ranks on these hosts, over ssh"
    )
    parser.add_argument(
        "--ssh",
        metavar="COMMAND",
        default="ssh",
        help="the ssh command, with its options (default: ssh)",
    )
    parser.add_argument(
        "--remote",
        metavar="COMMAND",
        default="",
        help="the command that starts allaboard on the other hosts",
    )
    parser.add_argument(
        "--bundle",
        metavar="OUT.tar.gz",
        type=Path,
        help="pack the diagnosis, logs and versions for a bug report, with secrets redacted",
    )
    # The question of another host's `diagnose --hosts`; the answer is JSON.
    parser.add_argument("--look", action="store_true", help=argparse.SUPPRESS)


def main(arguments: Sequence[str]) -> int:
    """Print the diagnosis, and return the exit code.

    Raises:
        UsageError: there is nothing to diagnose, or a target does not exist.
    """
    from allaboard.options.command_parser import build_parser

    options = build_parser("diagnose", add_arguments).parse_arguments(arguments)
    targets: list[str] = options.targets
    if options.look:
        return _answer_other_host(targets)
    if not targets and not options.hosts:
        raise UsageError(
            "give a run folder, logs or pids, or --hosts H1,H2 for all ranks there; "
            "see: allaboard diagnose --help"
        )
    if STDIN_NAME not in targets or options.hosts:
        return _diagnose_and_print(options, targets, None)
    from allaboard.cli.standard_input import copied_standard_input

    with copied_standard_input() as copy:
        named = [str(copy) if target == STDIN_NAME else target for target in targets]
        return _diagnose_and_print(options, list(dict.fromkeys(named)), copy)


def _diagnose_and_print(
    options: argparse.Namespace, targets: list[str], stdin_copy: Path | None
) -> int:
    paths: list[Path] = []
    looks: tuple[HostLook, ...] = ()
    targets_by_host = _remote_targets(options.hosts, targets)

    def look_at_hosts() -> tuple[HostLook, ...]:
        return _look_at_hosts(targets_by_host, options.ssh, options.remote)

    if targets_by_host:
        looks = look_at_hosts()
    else:
        pids = [t for t in targets if t.isdecimal() and not Path(t).exists()]
        if pids and len(pids) < len(targets):
            raise UsageError(
                "give paths or pids, not both; for a folder whose name is a number: ./123"
            )
        looks = (_look_here(pids),) if pids else ()
        paths = [] if pids else [Path(t) for t in targets]
    diagnosis = _diagnose_looks(looks) if looks else _diagnose_paths(paths)
    if looks and _needs_second_look(diagnosis, looks):
        looks, diagnosis = _look_again(looks, diagnosis, look_at_hosts if targets_by_host else None)
    if stdin_copy is not None:
        from allaboard.cli.standard_input import named_as_standard_input

        diagnosis = named_as_standard_input(diagnosis, stdin_copy)
    from allaboard.formats.redaction import redact_passwords
    from allaboard.report.diagnosis import as_json, as_text
    from allaboard.report.plain_text import output_width

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    text = (
        as_json(diagnosis)
        if options.format == "json"
        else as_text(diagnosis, colour, options.verbose, output_width(sys.stdout.fileno()))
    )
    write_output(redact_passwords(text))
    if options.bundle is not None:
        answers = {
            "diagnosis.txt": as_text(diagnosis, False, True),
            "diagnosis.json": as_json(diagnosis),
        }
        _pack_bundle(options.bundle, answers, paths, looks)
    if looks and all(look.trouble for look in looks):
        return USAGE_EXIT_CODE
    return 1 if diagnosis.findings else 0


def _answer_other_host(targets: list[str]) -> int:
    """Print what was seen of these processes, for the host that asks over ssh."""
    import msgspec

    print(msgspec.json.encode(_look_here(targets)).decode())
    return 0


def _look_here(targets: list[str]) -> HostLook:
    from allaboard.diagnosis.live.process_inspection import (
        NoSuchProcessError,
        choose_processes,
        inspect_processes,
    )

    try:
        return inspect_processes(choose_processes(targets), targets)
    except NoSuchProcessError as error:
        raise UsageError(str(error)) from None


def _remote_targets(hosts: str, targets: list[str]) -> dict[str, list[str]]:
    """Return what to examine on which other host; empty if everything is on this host."""
    matches = [_REMOTE_PID.fullmatch(t) for t in targets if not Path(t).exists()]
    targets_by_host: dict[str, list[str]] = {}
    if not hosts and matches and len(matches) == len(targets) and all(matches):
        for match in filter(None, matches):
            targets_by_host.setdefault(match[1], []).append(match[2])
        return targets_by_host
    names = [h.strip() for h in hosts.split(",") if h.strip()]
    if hosts and (not names or any(not _HOST.fullmatch(h) for h in names)):
        raise UsageError(f'--hosts expects host names, as node1,node2; got "{hosts}"')
    if hosts and any(t.isdecimal() for t in targets):
        pid = next(t for t in targets if t.isdecimal())
        raise UsageError(f"a pid belongs to one host; try: allaboard diagnose {names[0]}:{pid}")
    return dict.fromkeys(names, targets)


def _look_at_hosts(
    targets_by_host: Mapping[str, Sequence[str]], ssh: str, remote: str
) -> tuple[HostLook, ...]:
    from allaboard.diagnosis.live.remote_diagnosis import inspect_hosts

    return inspect_hosts(
        targets_by_host, ssh, remote or shlex.join([sys.executable, "-m", "allaboard"])
    )


def _diagnose_looks(looks: tuple[HostLook, ...], times: int = 1) -> Diagnosis:
    from allaboard.diagnosis.live.live_diagnosis import diagnose_processes

    return diagnose_processes(looks, times)


def _needs_second_look(diagnosis: Diagnosis, looks: tuple[HostLook, ...]) -> bool:
    """Return True if all ranks were seen and nothing was found: a hang that has just begun shows later."""
    is_complete = not (diagnosis.notes or diagnosis.missing or any(look.trouble for look in looks))
    return is_complete and not diagnosis.findings and sum(len(look.present) for look in looks) > 1


def _look_again(
    looks: tuple[HostLook, ...],
    diagnosis: Diagnosis,
    look_at_hosts: Callable[[], tuple[HostLook, ...]] | None,
) -> tuple[tuple[HostLook, ...], Diagnosis]:
    """Return a second look at the same processes, or the first one if a process has ended since."""
    from allaboard.diagnosis.live.process_inspection import (
        NoSuchProcessError,
        choose_processes,
        inspect_processes,
    )

    print_error("allaboard diagnose: no finding at the first look; looking once more")
    time.sleep(SECOND_LOOK_DELAY_S)
    pids = [str(p.member.who.pid) for look in looks for p in look.present]
    ended_pids = [str(departed.pid) for look in looks for departed in look.departed]
    try:
        second = (
            look_at_hosts()
            if look_at_hosts
            else (inspect_processes(choose_processes(pids), pids + ended_pids),)
        )
    except NoSuchProcessError:
        return looks, diagnosis
    return second, _diagnose_looks(second, times=2)


def _diagnose_paths(paths: list[Path]) -> Diagnosis:
    from allaboard.diagnosis.logs.diagnose_paths import diagnose_paths
    from allaboard.diagnosis.logs.input_files import MissingInputError
    from allaboard.rules.engine.catalogue import load_catalogue

    try:
        return diagnose_paths(paths, load_catalogue())
    except MissingInputError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{error.filename}: {reason}") from None


def _pack_bundle(
    bundle: Path, answers: dict[str, str], paths: list[Path], looks: tuple[HostLook, ...]
) -> None:
    from allaboard.diagnosis.logs.bundle import pack_bundle

    try:
        packed = pack_bundle(bundle, answers, paths, looks)
    except OSError as error:
        raise UsageError(f"--bundle {bundle}: {(error.strerror or str(error)).lower()}") from None
    print_error(
        f"allaboard: packed {len(packed)} files into {bundle}; look through it before you\n"
        f"  send it: tar -tzf {shlex.quote(str(bundle))}"
    )
