"""The options of `allaboard run`, those before the script.

They are parsed with argparse rather than with what the other commands use: the workers start before
anything heavy is loaded, and a larger library would be most of the time until then.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from allaboard.launching.values import add_tls

FLAGS = ("--observe", "--chief", "--evaluator", "--verbose", "-v", "-h", "--help")
"""Options that take no value."""


def parser() -> argparse.ArgumentParser:
    """The options of `run`, those before the script."""
    made = argparse.ArgumentParser(
        prog="allaboard run",
        usage="allaboard run [--ps P] [-n N] [OPTIONS] SCRIPT [ARGS...] | -m MODULE [ARGS...] | "
        "-- COMMAND [ARGS...]",
        description="Start a training job, see who is there, watch it, and say what is wrong while "
        "it is wrong.",
        epilog="Exit code: 0 all trained, 1 a worker failed, 2 wrong use, 3 the roll call failed, "
        "4 ended for a hang, 130 interrupted.",
        allow_abbrev=False,
    )
    add = made.add_argument
    add("-n", metavar="N", help="start N workers on this host")
    add("--ps", metavar="P", help="start P parameter servers too, each task with its TF_CONFIG")
    add("--chief", action="count", default=0, help="with --ps: a chief besides the workers")
    add("--evaluator", action="count", default=0, help="with --ps: an evaluator too")
    add(
        "--ps-server",
        default="auto",
        choices=("auto", "script"),
        help="who runs the server loop of a ps: auto (allaboard, where the script makes no Server)",
    )
    add("-m", metavar="MODULE", dest="module", help="run a module instead of a script")
    add(
        "--timeout",
        metavar="S",
        type=seconds,
        help="how long a member that was never heard of is waited for (60); given where others "
        "start the members, it ends the job instead of only telling",
    )
    add(
        "--timeout-hard",
        metavar="S",
        type=seconds,
        help="the same for one that is alive and does not come (no bound)",
    )
    add("--grace", metavar="S", default=30.0, type=seconds, help="between SIGTERM and SIGKILL (30)")
    add(
        "--observe", action="store_true", help="only watch: hold nobody, signal nobody, end nothing"
    )
    add(
        "--check-values",
        metavar="N",
        help="compare some elements of one parameter between ranks every N steps (PyTorch)",
    )
    add("--on-hang", default="report", choices=("report", "stop"), help="about a job that hangs")
    add(
        "--hang-after",
        metavar="S",
        default=600.0,
        type=seconds,
        help="with stop: how long without progress where no cause is certain (600)",
    )
    add(
        "--on-failure",
        default="stop",
        choices=("stop", "restart"),
        help="when a worker fails: stop, or start all again from their own checkpoint",
    )
    add("--max-restarts", metavar="N", help="with restart: how often at most (3)")
    add(
        "--backoff",
        metavar="S",
        type=seconds,
        help="with restart: pause after a round without progress, doubled each time (1)",
    )
    add(
        "--stopped-after",
        metavar="S",
        type=seconds,
        help="with restart: replace a worker that is stopped (SIGSTOP) for so long (30)",
    )
    add(
        "--ps-snapshot",
        metavar="SECONDS",
        help="with parameter servers and restart: keep the variables in memory, read anew every so many "
        "seconds; a server comes back with them (TensorFlow 1)",
    )
    add(
        "--ps-standby",
        choices=("on", "off"),
        help="with parameter servers and restart: a process that has imported the framework waits to take "
        "the place of a task that ends (on with --ps, else off)",
    )
    add("--run-dir", metavar="DIR", type=Path, help="for logs, journal and report")
    add("--report", metavar="FILE.json", type=Path, help="write the report there too")
    add("--env", metavar="K=V", action="append", default=[], help="a variable for every worker")
    add(
        "--coordinator",
        metavar="HOST:PORT",
        default="",
        help="where the agents of several hosts meet (the framework's own address); or "
        "etcd://HOST:PORT/PREFIX, where any host may go",
    )
    add("--secret-file", metavar="FILE", type=Path, help="the job's secret, the same on every host")
    add_tls(made)
    add("-v", "--verbose", action="store_true", help="all evidence of a finding")
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
