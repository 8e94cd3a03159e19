"""What may be started again, as the options say it."""

from __future__ import annotations

import argparse

from allaboard.launching.refusal import usage
from allaboard.recover.policy import Restarts

MOST = 1000
"""Restarts; a job that fails more often than this wants a person."""
STOPPED_AFTER = 30.0
"""Seconds that a stopped worker is waited for, where the user names no other time."""


def restarts(given: argparse.Namespace, joined: bool) -> Restarts:
    """The policy; refuses what contradicts itself."""
    if given.on_failure == "stop":
        for option, value in (
            ("--max-restarts", given.max_restarts),
            ("--backoff", given.backoff),
            ("--stopped-after", given.stopped_after),
        ):
            if value is not None:
                usage(f"{option} goes with --on-failure restart, which is not given")
        return Restarts()
    if given.observe:
        usage("--observe ends and starts nothing; leave it out, or --on-failure restart")
    if joined:
        usage(
            "--on-failure restart starts again what was started here; in this environment others "
            "start the members, and must start them again: give -n N, or use their own option"
        )
    backoff = Restarts().backoff if given.backoff is None else given.backoff
    return Restarts(allowed=True, most=_most(given.max_restarts), backoff=backoff)


def _most(text: str | None) -> int:
    if text is None:
        return Restarts().most
    if not text.isdecimal() or not int(text) <= MOST:
        usage(
            f"--max-restarts {text}: a number from 0 to {MOST}; "
            "try: allaboard run -n 4 --on-failure restart --max-restarts 3 train.py"
        )
    return int(text)
