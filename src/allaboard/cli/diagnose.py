"""`allaboard diagnose PATH|PID…`: find out why a job hangs or has failed, from its processes or its logs."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.cli.commands import USAGE_EXIT_CODE
from allaboard.cli.diagnosed_processes import (
    diagnose_looks,
    find_only_job,
    find_remote_targets,
    look_again,
    look_at_hosts,
    look_here,
    needs_second_look,
)
from allaboard.cli.diagnosis_bundle import pack_confirmed_bundle
from allaboard.cli.standard_output import print_error, write_output
from allaboard.options.usage_error import UsageError

if TYPE_CHECKING:
    import argparse

    from allaboard.facts import Diagnosis, HostLook
    from allaboard.options.command_parser import CommandParser

STDIN_NAME = "-"
_ENDPOINT = re.compile(r"(?:http|ras)://")
"""How a target begins that is a service of the job itself."""


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments of `diagnose`."""
    import argparse

    parser.describe(
        "[OPTIONS] [PATH|PID|HOST:PID|URL|-...]\n[OPTIONS] --hosts H1,H2 [WORD...]",
        "Find the cause of a job that hangs now, or that has failed, and the evidence for it.\n\n"
        "Give the PIDs if the job hangs, or its logs, dumps and traces if it failed. Nothing is paused or "
        "signalled. The PID of one rank is enough for all ranks of its job on this host, and so is that of "
        "whatever started them (torchrun, bash, timeout, conda run). Without arguments, the training jobs of "
        "this host are listed; if there is only one, it is examined.",
        "Exit code: 0 nothing found, 1 findings, 2 usage error, or a PATH or PID that does not exist.",
        "allaboard diagnose",
        "allaboard diagnose 4711",
        "allaboard diagnose logs/",
        "kubectl logs job/train | allaboard diagnose -",
        "allaboard diagnose --hosts node0,node1 train.py",
        "allaboard diagnose http://127.0.0.1:25999",
    )
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="PATH|PID|HOST:PID|URL",
        help="run folders, logs, stack dumps, Flight Recorder traces, or folders of them; - reads standard "
        "input. Or processes: PID on this host, HOST:PID on another one, over ssh. Or a service of the job: "
        "http://HOST:PORT, PyTorch's debug server; ras://HOST, NCCL's. With --hosts: words from "
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
        "--html",
        metavar="FILE",
        type=Path,
        help="also write the answer as one page, to send to others",
    )
    parser.add_argument(
        "--hosts", metavar="H1,H2", default="", help="find the ranks on these hosts, over ssh"
    )
    parser.add_argument(
        "--ray", action="store_true", help="find the ranks among the actors of Ray on this host"
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
    parser.add_argument(
        "--yes",
        action="store_true",
        help="with --bundle: pack logs without asking; needed where there is no terminal to ask on",
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
    if options.ray:
        targets = _add_raylets(targets, options.hosts)
    if not targets and not options.hosts:
        targets = find_only_job()
        if not targets:
            return USAGE_EXIT_CODE
    if any(_ENDPOINT.match(target) for target in targets) and not options.hosts:
        from allaboard.cli.asked_endpoints import asked_endpoints

        with asked_endpoints(targets) as (named, shown_names):
            return _diagnose_and_print(options, named, shown_names)
    if STDIN_NAME not in targets or options.hosts:
        return _diagnose_and_print(options, targets, {})
    from allaboard.cli.standard_input import SHOWN_NAME, copied_standard_input

    with copied_standard_input() as copy:
        named = [str(copy) if target == STDIN_NAME else target for target in targets]
        return _diagnose_and_print(options, list(dict.fromkeys(named)), {str(copy): SHOWN_NAME})


def _add_raylets(targets: list[str], hosts: str) -> list[str]:
    """Return the targets with the raylets of this host, below which its ranks run. Raises UsageError."""
    from allaboard.hosts.rank_processes import find_raylets

    if hosts:
        raise UsageError(
            "--ray looks on this host alone; on each host type: allaboard diagnose --ray"
        )
    pids = find_raylets()
    if not pids:
        raise UsageError(
            "--ray: no raylet runs on this host, or it is another user's; see where they run: ray status"
        )
    return [*targets, *map(str, pids)]


def _diagnose_and_print(
    options: argparse.Namespace, targets: list[str], shown_names: Mapping[str, str]
) -> int:
    paths: list[Path] = []
    looks: tuple[HostLook, ...] = ()
    targets_by_host = find_remote_targets(options.hosts, targets)

    look_elsewhere = partial(look_at_hosts, targets_by_host, options.ssh, options.remote)
    if targets_by_host:
        looks = look_elsewhere()
    else:
        pids = [t for t in targets if t.isdecimal() and not Path(t).exists()]
        if pids and len(pids) < len(targets):
            raise UsageError(
                "give paths or pids, not both; for a folder whose name is a number: ./123"
            )
        looks = (look_here(pids),) if pids else ()
        paths = [] if pids else [Path(t) for t in targets]
    diagnosis = diagnose_looks(looks) if looks else _diagnose_paths(paths)
    if looks and needs_second_look(diagnosis, looks):
        again = look_elsewhere if targets_by_host else None
        looks, diagnosis = look_again(looks, diagnosis, again)
    if shown_names:
        from allaboard.cli.standard_input import with_shown_names

        diagnosis = with_shown_names(diagnosis, shown_names)
    from allaboard.formats.secret_hints import redact
    from allaboard.report.diagnosis import as_json, as_text
    from allaboard.report.plain_text import output_width, shows_colours

    found, diagnosis = diagnosis, redact(diagnosis)
    colour = shows_colours(sys.stdout)
    text = (
        as_json(diagnosis)
        if options.format == "json"
        else as_text(diagnosis, colour, options.verbose, output_width(sys.stdout.fileno()))
    )
    write_output(text)
    if options.html is not None:
        _write_page(options.html, diagnosis)
    if options.bundle is not None:
        answers = {"diagnosis.txt": as_text(found, False, True), "diagnosis.json": as_json(found)}
        pack_confirmed_bundle(options.bundle, answers, paths, looks, options.yes)
    if looks and all(look.trouble for look in looks):
        return USAGE_EXIT_CODE
    return 1 if diagnosis.findings else 0


def _write_page(path: Path, diagnosis: Diagnosis) -> None:
    from allaboard.faces.report.output_formats import render_diagnosis
    from allaboard.rules.engine.catalogue import rule_pages

    page = render_diagnosis(diagnosis, rule_pages({f.rule: f.name for f in diagnosis.findings}))
    try:
        path.write_text(page, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"--html {path}: {(error.strerror or str(error)).lower()}") from None
    print_error(f"allaboard: wrote {path}")


def _answer_other_host(targets: list[str]) -> int:
    """Print what was seen of these processes, for the host that asks over ssh."""
    import msgspec

    print(msgspec.json.encode(look_here(targets)).decode())
    return 0


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
