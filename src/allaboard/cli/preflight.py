"""`allaboard preflight`: started on every host as training would be, it says whether training would start."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.options.option_values import add_tls, coordinator, secret, tls
from allaboard.options.run_folder import run_dir
from allaboard.options.usage_error import UsageError
from allaboard.options.value_types import Seconds

if TYPE_CHECKING:
    import argparse

    from allaboard.options.command_parser import CommandParser

FORMATS = ("text", "json", "html")
COLLECTIVE_STALL_S = 30.0
"""Time without progress after which the collective counts as stuck, unless --bound says another."""


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments of `preflight`."""
    import argparse

    parser.describe(
        "[OPTIONS]\n[OPTIONS] --hosts H1,H2",
        "Test the hosts and the network before the job. Start it on every host, as the job is started: it "
        "calls the roll at the job's own meeting place, compares the hosts, tries every link both ways, and "
        "runs one collective of the framework itself. No training script is run.",
        "Exit code: 0 the job would start, 3 it would not, 2 usage error, 130 interrupted.",
        "srun allaboard preflight",
        "allaboard preflight --hosts node0,node1",
    )
    add = parser.add_argument
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument(
        "--full",
        action="store_true",
        help="also run one real collective (default); needs the framework",
    )
    depth.add_argument("--quick", action="store_true", help="leave out the collective")
    add(
        "--hosts",
        metavar="H1,H2",
        default="",
        help="start it on these hosts over ssh, one task per host",
    )
    add(
        "--ssh",
        metavar="COMMAND",
        default="ssh",
        help="with --hosts: the ssh command, with its options (default: ssh)",
    )
    add("--format", default="text", choices=FORMATS, help="output format (default: text)")
    add(
        "--output",
        metavar="FILE",
        type=Path,
        help="write to FILE instead of standard output; rank R > 0 writes to FILE.rankR",
    )
    add("--framework", default="", choices=("torch", "tensorflow", "jax"),
        help="whose collective to run (default: that of the environment, else torch)")  # fmt: skip
    add(
        "--timeout",
        metavar="S",
        type=Seconds(),
        default=60.0,
        help="how long to wait for the others (default: 60)",
    )
    add(
        "--bound",
        metavar="S",
        type=Seconds(),
        default=COLLECTIVE_STALL_S,
        help="how long the collective may stand still (default: 30)",
    )
    add(
        "--coordinator",
        metavar="HOST:PORT",
        default="",
        help="where all hosts meet (default: the job's own address); or etcd://HOST:PORT/PREFIX",
    )
    add("--secret-file", metavar="FILE", type=Path, help="the job's secret, the same on every host")
    add_tls(parser)
    add("--leashed", default="", help=argparse.SUPPRESS)  # over ssh: the hosts, by --hosts
    add("--run-dir", metavar="DIR", type=Path, help="write logs, journal and report here")
    add("-v", "--verbose", action="store_true", help="print all evidence of a finding")


def main(words: Sequence[str]) -> int:
    """Call the roll, print the result, and return the exit code. Raises UsageError."""
    from allaboard.options.command_parser import build_parser

    options = build_parser("preflight", add_arguments).parse_words(words)
    if options.hosts:
        from allaboard.preflight.ssh_launch import over_ssh

        return over_ssh(options)
    return _run(options)


def _run(given: argparse.Namespace) -> int:
    from allaboard.cluster.transport.etcd_url import is_etcd_url
    from allaboard.configuration.launcher_context import described
    from allaboard.launch.launch_plan import Plan
    from allaboard.launch.local_workers import WorkerStartError, launch, new_job_id
    from allaboard.launch.script_interpreter import python
    from allaboard.preflight import remote_lifetime, stand_in
    from allaboard.preflight.task import variables_of, words
    from allaboard.preflight.task_selection import asked, mode

    if given.leashed:
        remote_lifetime.say_host()
    sealed = remote_lifetime.secret() if given.leashed else secret(given.secret_file)
    certificates = tls(given)
    meeting = coordinator(given.coordinator, certificates)
    elects = is_etcd_url(meeting)
    one = asked(given, meeting, elects)
    depth = mode(given, one)
    job = new_job_id()
    variables = {
        **{k: v for k, v in variables_of(one).items() if k not in os.environ},
        "ALLABOARD_PREFLIGHT": words(one, depth, given.bound),
    }
    joined = described({**os.environ, **variables})
    assert joined is not None
    # Where the launcher's own store has the port, the way to the meeting is posted in it.
    place = "" if joined.kept else joined.address or one.place
    joined = joined._replace(rank=one.rank, address=place)
    plan = Plan(
        command=[python(), str(Path(stand_in.__file__))],
        size=1,
        given=False,
        gate="cluster",
        run_dir=run_dir(given.run_dir, job),
        job=job,
        extra=variables,
    )
    try:
        started = launch(plan)
    except WorkerStartError as error:
        raise UsageError(str(error)) from None
    if given.leashed:
        remote_lifetime.end_with()
    from allaboard.agent.background_check import CheckSubject
    from allaboard.agent.main import run_agent
    from allaboard.agent.options import Options
    from allaboard.preflight.summary import exit_code_of

    options = Options(
        timeout=given.timeout,
        timeout_hard=given.timeout,
        grace=2.0,
        stop_on_hang=True,
        hang_after=given.bound,
        stop_on_error=True,
        verbose=given.verbose,
        joined=joined,
        secret=sealed,
        tls=certificates,
        coordinator=meeting,
        # What we add ourselves repeats it under other names.
        check_subject=CheckSubject(variables=dict(os.environ)),
        exit_code_of=exit_code_of(one.size),
    )
    code = run_agent(started, options)
    _show(given, plan.run_dir, one._replace(place=meeting) if elects else one, depth)
    return code


def of_rank(file: Path, rank: int) -> Path:
    """Rank 0, where all meet, writes to the file itself, the others beside it: found.rank2.json."""
    return file if rank <= 0 else file.with_name(f"{file.stem}.rank{rank}{file.suffix}")


def _show(given: argparse.Namespace, folder: Path, one: object, mode: str) -> None:
    from allaboard.diagnosis.logs.run_folder import read
    from allaboard.preflight.summary import summary
    from allaboard.preflight.task import Task
    from allaboard.report.preflight import as_json, as_text
    from allaboard.report.preflight_page import render_page

    assert isinstance(one, Task)
    faces = {"text": as_text, "json": as_json, "html": render_page}
    shown = faces[given.format](summary(read(folder), one, mode, os.uname().nodename))
    if given.output is not None:
        of_rank(given.output, one.rank).write_text(shown)
        return
    if one.rank > 0 and given.format != "text":
        return  # under srun all would write one document into the other
    sys.stdout.write(shown)
    sys.stdout.flush()
