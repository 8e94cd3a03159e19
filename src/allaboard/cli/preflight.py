"""`allaboard preflight`: started on every host as training would be, it says whether training would start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.options.option_values import add_tls_options
from allaboard.options.value_types import Seconds

if TYPE_CHECKING:
    from allaboard.options.command_parser import CommandParser

FORMATS = ("text", "json", "html")
COLLECTIVE_STALL_S = 30.0
"""How long the collective may stand still before it counts as stuck, unless --bound says another time."""


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
    add_tls_options(parser)
    add("--leashed", default="", help=argparse.SUPPRESS)  # over ssh: the hosts, by --hosts
    add("--run-dir", metavar="DIR", type=Path, help="write logs, journal and report here")
    add("-v", "--verbose", action="store_true", help="print all evidence of a finding")


def main(arguments: Sequence[str]) -> int:
    """Call the roll, print the result, and return the exit code. Raises UsageError."""
    from allaboard.options.command_parser import build_parser

    options = build_parser("preflight", add_arguments).parse_arguments(arguments)
    if options.hosts:
        from allaboard.preflight.ssh_launch import run_over_ssh

        return run_over_ssh(options)
    from allaboard.preflight.run_preflight import run_preflight

    return run_preflight(options)
