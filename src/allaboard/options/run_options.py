"""The options of `allaboard run`, those before the script.

They are parsed with argparse rather than with what the other commands use: the workers start before
anything heavy is loaded, and a larger library would be most of the time until then.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from allaboard.options.option_values import add_tls

FLAGS = ("--observe", "--chief", "--evaluator", "--verbose", "-v", "-h", "--help")
"""Options that take no value."""


def parser() -> argparse.ArgumentParser:
    """The options of `run`, those before the script."""
    made = argparse.ArgumentParser(
        prog="allaboard run",
        usage="allaboard run [--ps P] [-n N] [OPTIONS] SCRIPT [ARGS...] | -m MODULE [ARGS...] | "
        "-- COMMAND [ARGS...]",
        description="Start a training job, wait until all workers are there, watch them, and report problems "
        "while they happen.",
        epilog="Exit code: 0 all trained, 1 a worker failed, 2 usage error, 3 the roll call failed, "
        "4 ended for a hang, 130 interrupted.",
        allow_abbrev=False,
    )
    add = made.add_argument_group("what to start").add_argument
    add("-n", metavar="N", help="start N workers on this host")
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
    add = made.add_argument_group("how long to wait, and what to end").add_argument
    add(
        "--timeout",
        metavar="S",
        type=seconds,
        help="how long to wait for a worker that nobody has heard of (default: 60). If others start the "
        "workers (several hosts), giving it also ends the job then, instead of only reporting it",
    )
    add(
        "--timeout-hard",
        metavar="S",
        type=seconds,
        help="how long to wait for a worker that is alive and has not come (default: no limit)",
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
        type=seconds,
        help="with --on-hang stop: stop after this long without progress if no cause is certain "
        "(default: 600)",
    )
    add(
        "--grace",
        metavar="S",
        default=30.0,
        type=seconds,
        help="time between SIGTERM and SIGKILL (default: 30)",
    )
    add(
        "--observe",
        action="store_true",
        help="only watch: hold nobody, signal nobody, end nothing",
    )
    add = made.add_argument_group("what to start again").add_argument
    add(
        "--on-failure",
        default="stop",
        choices=("stop", "restart"),
        help="when a worker fails, stop (default), or start all workers again; they go on from their own "
        "checkpoint",
    )
    add("--max-restarts", metavar="N", help="with restart: restart at most this often (default: 3)")
    add(
        "--backoff",
        metavar="S",
        type=seconds,
        help="with restart: pause after a round without progress, doubled each time (default: 1)",
    )
    add(
        "--stopped-after",
        metavar="S",
        type=seconds,
        help="with restart: replace a worker that has been stopped (SIGSTOP) for this long (default: 30)",
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
    add = made.add_argument_group("what to check, and where to write").add_argument
    add(
        "--check-values",
        metavar="N",
        help="compare some elements of one parameter between ranks every N steps (PyTorch)",
    )
    add(
        "--run-dir",
        metavar="DIR",
        type=Path,
        help="write logs, journal and report here (default: .allaboard/JOB)",
    )
    add("--report", metavar="FILE.json", type=Path, help="write the report to this file too")
    add("-v", "--verbose", action="store_true", help="print all evidence of a finding")
    hosts = made.add_argument_group("how the hosts of a job meet")
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
    add_tls(hosts)
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


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text}: seconds, 0 or more")
    return value
