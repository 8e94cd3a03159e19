"""`allaboard spec`: print the cluster that all sources describe together, or convert it to another format."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from allaboard.options.usage_error import UsageError

if TYPE_CHECKING:
    from allaboard.facts import ConfigFacts
    from allaboard.options.command_parser import CommandParser

TARGETS = {
    "tf_config": "tf_config",
    "env": "torch_env",
    "hostfile": "hostfile",
    "torchrun": "torchrun",
}
"""The formats of ``--as``, each with the name of the source that writes it."""
UNUSABLE_PROBLEMS = ("unreadable", "tf_config.json", "tf_config.shape")
"""Problems that leave no spec to convert."""


def add_arguments(parser: CommandParser) -> None:
    """Declare the arguments of `spec`."""
    from allaboard.options.value_types import WholeNumber

    parser.describe(
        "[OPTIONS] [PATH...]",
        "Print the cluster that the configuration describes, each value with its origin; or convert it.",
        "Exit code: 0, or 2 if there is no configuration, or it cannot be converted.",
        "allaboard spec tf_config.json",
        "allaboard spec job.sbatch --as tf_config --hosts node0,node1",
    )
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="files, as for `check`; - reads standard input; without any, the environment is read",
    )
    parser.complete_value("paths", "file")
    parser.add_argument(
        "--as", dest="target", default="", choices=tuple(TARGETS), help="convert to this format"
    )
    parser.add_argument("--json", action="store_true", help="print the spec as JSON")
    parser.add_argument(
        "--port",
        metavar="N",
        default=0,
        type=WholeNumber(0, 65535),
        help="with --as: first port on a host for which no port is given",
    )
    parser.add_argument(
        "--hosts",
        metavar="H1,H2",
        default="",
        help="with --as: the hosts in order, if no source lists them",
    )


def main(arguments: Sequence[str]) -> int:
    """Print or convert the spec, and return the exit code.

    Raises:
        UsageError: there is nothing to read, it cannot be read, or it cannot be written in that format.
    """
    from allaboard.options.command_parser import build_parser

    options = build_parser("spec", add_arguments).parse_arguments(arguments)
    from allaboard.check.collect import from_environment, from_files

    try:
        gathered = from_files(options.paths) if options.paths else from_environment(os.environ)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{error.filename or ''}: {reason}") from None
    configs = [c for c in gathered.configs if c.parts]
    unreadable = [p for c in gathered.configs for p in c.problems if p.kind == "unreadable"]
    if not configs:
        raise UsageError(
            f"{unreadable[0].origin}: {unreadable[0].message}"
            if unreadable
            else "no configuration found"
        )
    if options.target:
        hosts = [host.strip() for host in options.hosts.split(",") if host.strip()]
        sys.stdout.write(_converted(configs[0], options.target, options.port, hosts))
        return 0
    from allaboard.report.spec_table import as_json, as_table

    for config in configs:
        sys.stdout.write(as_json(config) if options.json else as_table(config))
    return 0


def _converted(config: ConfigFacts, target: str, first_port: int, hosts: Sequence[str]) -> str:
    """Return the configuration in another format. Raises UsageError where that format cannot say it."""
    if unusable := [p for p in config.problems if p.kind in UNUSABLE_PROBLEMS]:
        reason = f"{unusable[0].message} (allaboard check says more)"
        raise UsageError(f"cannot be written as {target}: {reason}")
    from allaboard.check.collect import configuration_sources
    from allaboard.configuration.spec.conversion_choices import complete_for_writer

    write = configuration_sources()[TARGETS[target]].write
    assert write is not None
    try:
        return write(complete_for_writer(config.spec, first_port, hosts, config.parts))
    except ValueError as error:
        raise UsageError(f"cannot be written as {target}: {error}") from None
