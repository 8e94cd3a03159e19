"""Lists a framework's error messages about distribution that no reader of `allaboard diagnose` hears.

    python scripts/unheard_wordings.py torch tensorflow jax jaxlib
    python scripts/unheard_wordings.py ~/src/nccl/src ~/src/vllm/vllm --all
    python scripts/unheard_wordings.py torch --under distributed/elastic

A target is an installed package, or a folder of sources. The messages are the literals of ``raise`` and of
error logs in Python, of error macros in C and C++, of errors in Go, help texts, and what looks like them in
shared libraries. Each is given to all readers as its program writes it, with a number in place of what it
fills in. ``--all`` lists those that are heard too, each with the rule; "quoted" are those that are only
passed on, as the last words of a log. ``--any-subject`` takes messages on anything else, too. Many of what is
listed are mistakes in a call, which the exception's own message explains best: look for those that
tell of other members.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from framework_wordings import FILLER, MIN_CHARS, Wording, find_wordings

from allaboard.analysis.failures.known_errors import known_error_advice
from allaboard.analysis.failures.library_errors import explain_library_error
from allaboard.analysis.log_messages import KnownMessage
from allaboard.contracts import LogReader
from allaboard.diagnosis import instruments, platforms, readers
from allaboard.diagnosis.logs import run_readers
from allaboard.diagnosis.readers.fatal_log import UNEXPLAINED_END
from allaboard.facts import Exhibit, Frame, Heard, Raised
from allaboard.plugins import Plugin, plugins

_FRAMES = (
    Frame("/v/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 1, "f"),
    Frame("/job/train.py", 1, "main"),
)
QUOTED = "quoted"
"""Said of a message of which only the words are passed on."""
LOG_FORMS = (
    (r"^(?:WARN|ERROR)", "node1:4242:4300 [0] init.cc:7 NCCL WARN {text}"),
    (r"^ucs_", "[1718000000.000000] [node1:4242 :0]   sock.c:7    UCX  ERROR {text}"),
    (r"^(?:slurm_)?(?:error|fatal|perror)$", "slurmstepd: error: {text}"),
    (r"^HYDU", "[mpiexec@node1] main (mpiexec.c:7): {text}"),
    (
        r"^mpich",
        "Fatal error in MPI_Init: Other MPI error, error stack:\nMPIR_Init_thread(7): {text}",
    ),
    (r"^(?:RAY_)?LOG\(", "[2026-01-01 10:00:00,000 E 42 42] core.cc:7: {text}"),
    (r"^help", "{rule}\n{text}\n{rule}"),
)
"""How programs write what a macro is given: its name, and the lines around the text."""


def main() -> int:
    """Print the messages that no reader hears, and how many are heard."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="+", metavar="PACKAGE|FOLDER")
    parser.add_argument("--under", default="", help="only files whose path contains this")
    parser.add_argument("--all", action="store_true", help="list the messages that are heard too")
    parser.add_argument(
        "--any-subject",
        action="store_true",
        help="take messages that do not speak of distribution, too",
    )
    options = parser.parse_args()
    for target in options.targets:
        root = find_root(target)
        if root is None:
            print(f"{target}: neither a folder nor an installed package", file=sys.stderr)
            return 2
        found = find_wordings(root, any_subject=options.any_subject)
        wordings = [w for w in found if options.under in w.place]
        rules = {w: heard_as(w) for w in wordings}
        for wording in wordings:
            if options.all or rules[wording] in ("", QUOTED):
                print(f"{rules[wording] or 'unheard':10} {wording.place}: {wording.text[:200]!r}")
        quoted = sum(rule == QUOTED for rule in rules.values())
        heard = sum(map(bool, rules.values())) - quoted
        about = "failures" if options.any_subject else "distribution"
        print(
            f"{target}: {len(wordings)} messages about {about}, {heard} heard, {quoted} only quoted"
        )
    return 0


def find_root(target: str) -> Path | None:
    """Return the folder of a target; None if there is none."""
    if Path(target).is_dir():
        return Path(target)
    spec = importlib.util.find_spec(target) if target.isidentifier() else None
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def heard_as(wording: Wording) -> str:
    """Return what hears the message: a rule's code, or "exception" for what is known of exceptions; `QUOTED`
    if it is only passed on, "" for nothing."""
    rules = [h.rule for text in _as_logged(wording) for h in _heard_in(text)]
    if known := [r for r in rules if r != UNEXPLAINED_END]:
        return known[0]
    for message in _known_messages():
        if _has_part_of(wording.text, message):
            return message.rule
    raised = Raised(
        type=wording.exception or "RuntimeError",
        message=wording.text,
        raised_at=0.0,
        where=_FRAMES[-1],
        frames=_FRAMES,
    )
    failure = explain_library_error(raised)
    if known_error_advice(raised) or (failure is not None and not failure.is_generic):
        return "exception"
    # An exception is always quoted.
    return QUOTED if rules or wording.exception else ""


def _as_logged(wording: Wording) -> list[str]:
    """Return the message by itself, and as its program writes it."""
    if wording.exception:
        return [f"{wording.exception}: {wording.text}\n"]
    form = next((f for call, f in LOG_FORMS if re.match(call, wording.call)), "{text}")
    return [f"{wording.text}\n", form.format(text=wording.text, rule="-" * 74) + "\n"]


def _heard_in(text: str) -> Iterator[Heard]:
    exhibit = Exhibit(name="framework.log", data=text.encode())
    for reader in _readers():
        if (testimony := reader.read(exhibit)) is not None:
            yield from testimony.heard


def _has_part_of(text: str, message: KnownMessage) -> bool:
    """Return True if a known message has this text, or a part of it between two values.

    A library holds a message in parts.
    """
    if len(message.key) >= MIN_CHARS and message.key in text:
        return True
    parts = [p.strip() for p in text.split(FILLER)]
    return any(len(p) >= MIN_CHARS and p in message.sample for p in parts)


@cache
def _known_messages() -> tuple[KnownMessage, ...]:
    rooms = (readers, platforms, instruments)
    loaded = (p for room in rooms for p in plugins(room, "READER", LogReader))
    return tuple(
        m for p in loaded if isinstance(p, Plugin) for m in getattr(p.module, "MESSAGES", ())
    )


@cache
def _readers() -> tuple[LogReader, ...]:
    return tuple(reader for _name, reader in run_readers._load_readers()[0])


if __name__ == "__main__":
    raise SystemExit(main())
