"""The options of `allaboard run`, in the groups in which its help shows them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.options.option_values import add_tls_options, add_web_option
from allaboard.options.reporting import add_reporting_options
from allaboard.options.scheduler_options import add_scheduler_options
from allaboard.options.value_types import Seconds, WholeNumber

if TYPE_CHECKING:
    import argparse

    from allaboard.options.command_parser import CommandParser

    AddArgument = Callable[..., argparse.Action]
    """`add_argument` of a group of options."""

MAX_WORKERS = 4096
"""Workers on one host; far beyond what one host can train, and within its limits of open files."""
MAX_RESTARTS = 1000
"""A job that fails more often needs a person."""


def add_arguments(parser: CommandParser) -> None:
    """Declare the options of `run`."""
    parser.describe(
        "[OPTIONS] [-n N] SCRIPT [ARGS...]\n"
        "[OPTIONS] [-n N] -m MODULE [ARGS...]\n"
        "[OPTIONS] --ps P [-n N] SCRIPT [ARGS...]\n"
        "[OPTIONS] -- COMMAND [ARGS...]",
        "Start a training job, wait until all workers are there, watch them, and report problems as they "
        "happen. Options stand before the script; what follows the script is the script's own.",
        "Exit code: 0 all trained, 1 a worker failed, 2 usage error, 3 the roll call failed, 4 ended because "
        "of a hang, 130 interrupted.",
        "allaboard run -n 4 train.py --epochs 3",
        "allaboard run -n 4 --on-hang stop -m my_package.train",
        "allaboard run -- torchrun --nproc-per-node 4 train.py",
        "srun allaboard run train.py",
    )
    group = parser.add_argument_group
    _add_start_options(group("what to start").add_argument)
    _add_end_options(group("how long to wait, and what to end").add_argument)
    _add_restart_options(group("what to start again").add_argument)
    _add_output_options(group("what to check, and where to write").add_argument)
    add_scheduler_options(parser)
    add_reporting_options(group("whom to tell").add_argument)
    _add_display_options(group("what to show").add_argument)
    _add_meeting_options(group("how the hosts of a job meet"))


def _add_start_options(add: AddArgument) -> None:
    import argparse

    add(
        "-n",
        metavar="N",
        type=WholeNumber(1, MAX_WORKERS),
        help="start N workers on this host (also: --nproc-per-node N)",
    )
    add(
        "--nproc-per-node",
        "--nproc_per_node",
        dest="n",
        metavar="N",
        type=WholeNumber(1, MAX_WORKERS),
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
    )
    add("--ps", metavar="P", help="also start P parameter servers; each task gets its TF_CONFIG")
    add("--chief", action="count", default=0, help="with --ps: also start a chief")
    add("--evaluator", action="count", default=0, help="with --ps: also start an evaluator")
    add(
        "--ps-server",
        default="auto",
        choices=("auto", "script"),
        help="who runs the server loop of a ps: the script, or auto (default): allaboard, if the script "
        "makes no Server",
    )
    add("-m", metavar="MODULE", dest="module", help="run a module instead of a script")
    add(
        "--env",
        metavar="K=V",
        action="append",
        default=[],
        help="set a variable for every worker; may be repeated",
    )
    add(
        "--warm",
        action="store_true",
        help="import once what the script imports, and fork the workers of this host from there: a sooner "
        "start where they share processors",
    )


def _add_end_options(add: AddArgument) -> None:
    add(
        "--timeout",
        metavar="S",
        type=Seconds(),
        help="how long to wait for a worker that has not started (default: 60). If a launcher starts the "
        "workers (several hosts), giving it also ends the job then, instead of only reporting it",
    )
    add(
        "--timeout-hard",
        metavar="S",
        type=Seconds(),
        help="how long to wait for a worker that has started and has not joined (default: no limit)",
    )
    add(
        "--on-hang",
        default="report",
        choices=("report", "stop"),
        help="on a hang, only report it (default), or stop the job: at once if the cause is certain",
    )
    add(
        "--hang-after",
        metavar="S",
        default=600.0,
        type=Seconds(),
        help="with --on-hang stop: stop after this long without progress if no cause is certain "
        "(default: 600)",
    )
    add(
        "--grace",
        metavar="S",
        default=30.0,
        type=Seconds(),
        help="time between SIGTERM and SIGKILL (default: 30)",
    )
    add(
        "--observe",
        action="store_true",
        help="only watch: delay no worker, send no signal, end nothing",
    )


def _add_restart_options(add: AddArgument) -> None:
    add(
        "--on-failure",
        default="stop",
        choices=("stop", "restart"),
        help="when a worker fails, stop (default), or restart all workers; they resume from their own "
        "checkpoint",
    )
    add(
        "--max-restarts",
        metavar="N",
        type=WholeNumber(0, MAX_RESTARTS),
        help="with restart: restart at most this often (default: 3)",
    )
    add(
        "--backoff",
        metavar="S",
        type=Seconds(),
        help="with restart: pause after a round without progress, doubled each time (default: 1)",
    )
    add(
        "--stopped-after",
        metavar="S",
        type=Seconds(),
        help="with restart: replace a worker that has been stopped (SIGSTOP) for this long (default: 30)",
    )
    add(
        "--standby",
        metavar="K",
        type=WholeNumber(1, MAX_WORKERS),
        help="with restart: once the job trains, keep K processes ready that have imported what the workers "
        "have, to start with in the next round; the memory of an import each (default: none)",
    )
    add(
        "--ps-snapshot",
        metavar="SECONDS",
        help="with parameter servers and restart: keep their variables in memory, read again every SECONDS; "
        "a TensorFlow 1 server comes back with them",
    )
    add(
        "--ps-standby",
        choices=("on", "off"),
        help="with parameter servers and restart: keep a process ready that has imported the framework, to "
        "take the place of a task that ends (default: on with --ps, else off)",
    )


def _add_output_options(add: AddArgument) -> None:
    add(
        "--check-values",
        metavar="N",
        type=WholeNumber(1),
        help="compare some elements of one parameter between ranks every N steps (PyTorch)",
    )
    add(
        "--run-dir",
        metavar="DIR",
        type=Path,
        help="write logs, journal and report here (default: .allaboard/JOB)",
    )
    add("--report", metavar="FILE.json", type=Path, help="write the report to this file too")
    add(
        "--feed",
        metavar="HOST:PORT",
        default="",
        help="publish the feed for `allaboard watch` on this port too, for those who know the job's secret "
        "(default: only on a socket in the run folder)",
    )
    add(
        "--events",
        metavar="FILE",
        default="",
        help="write the feed as JSON lines into a file; - for stdout, and the workers' output to stderr",
    )
    add_web_option(add, "serve a page that shows the run,")


def _add_display_options(add: AddArgument) -> None:
    add(
        "--show",
        metavar="RANKS",
        help="whose output the terminal shows: all, none, or ranks and tasks, as in 0,3 or ps-0 (default: "
        "the lines of all, and the progress bars of the first worker; the log files have all output)",
    )
    add("--no-prefix", action="store_true", help="write no rank in front of the workers' lines")
    add(
        "--progress",
        default="auto",
        choices=("auto", "line", "off"),
        help="auto (default): a status line at the bottom of a terminal, and elsewhere a line of text when "
        "something changes and once a minute; line: always the latter; off: neither",
    )
    add("-q", "--quiet", action="store_true", help="print findings and failures only, no notes")
    add("-v", "--verbose", action="store_true", help="print all evidence of a finding")


def _add_meeting_options(hosts: argparse._ArgumentGroup) -> None:
    hosts.add_argument(
        "--coordinator",
        metavar="HOST:PORT",
        default="",
        help="where the agents of the hosts meet (default: the framework's own address); or "
        "etcd://HOST:PORT/PREFIX, if any host may go away, even the first",
    )
    hosts.add_argument(
        "--secret-file", metavar="FILE", type=Path, help="the job's secret, the same on every host"
    )
    hosts.add_argument(
        "--mixed",
        action="store_true",
        help="some hosts run without allaboard although the job has a secret or TLS: let their framework in",
    )
    add_tls_options(hosts)
