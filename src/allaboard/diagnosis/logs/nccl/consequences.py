"""Messages of NCCL that only repeat, or follow from, what the same process wrote before. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from allaboard.facts import Finding, Heard, Speaker

_CUDA_FAILED = "CUDA failed below NCCL: "
"""Begins the sentence on an error of CUDA that NCCL met, of which it knows only the name."""
_CUDA_ERROR = "CUDA error: "
"""Precedes the same name in what PyTorch raises."""
_LOST = "went away in the middle of a collective"
"""Ends the sentence on a peer whose connection broke."""
_GIVEN_UP = "Watchdog caught collective operation timeout"
_SIZES = "message truncated"
"""Begins what NCCL writes after another size than it expected came from a peer."""


def without_nccl_consequences(heard: Sequence[Heard]) -> list[Heard]:
    """Return the messages without what NCCL writes because its own process had failed or given up before."""
    return _without_losses_after_end(_without_echoes(heard))


def without_stated_reasons(findings: Iterable[Finding], messages: Sequence[Heard]) -> list[Finding]:
    """Return the watchdogs' findings without those about ranks that wrote themselves why they did not come.

    Such a message lists the finding's rule among those that it explains.
    """
    return [
        f
        for f in findings
        if not any(
            f.rule in h.explains and {w.rank for w in f.who} <= {s.rank for s in h.speakers}
            for h in messages
        )
    ]


def _without_echoes(heard: Sequence[Heard]) -> list[Heard]:
    """Return the messages without errors of CUDA that the same rank has raised.

    While a process ends, NCCL meets the error that the process has raised, and writes it again.
    """
    raised = [(s.rank, s.line) for h in heard for s in h.speakers if _CUDA_ERROR in s.line]
    return [h for h in heard if not (h.says.startswith(_CUDA_FAILED) and _is_raised(h, raised))]


def _is_raised(heard: Heard, raised: Iterable[tuple[int, str]]) -> bool:
    error = _CUDA_ERROR + heard.says.removeprefix(_CUDA_FAILED)
    ranks = {rank for rank, line in raised if error in line}
    return bool(ranks) and {s.rank for s in heard.speakers} <= ranks


def _without_losses_after_end(heard: Sequence[Heard]) -> list[Heard]:
    """Return the messages without peers that a rank lost after it had given up a collective itself.

    Whoever gives up, or gets a wrong size, aborts its communicator or stays in it, and its end closes the
    connections of its peers.
    """
    ends = [s for h in heard for s in h.speakers if _GIVEN_UP in s.line or _SIZES in s.line]
    remaining = []
    for message in heard:
        if not message.says.endswith(_LOST):
            remaining.append(message)
            continue
        speakers = tuple(s for s in message.speakers if not any(_precedes(e, s) for e in ends))
        if speakers:
            remaining.append(msgspec.structs.replace(message, speakers=speakers))
    return remaining


def _precedes(earlier: Speaker, later: Speaker) -> bool:
    """Return True if both lines are of one process, which wrote ``earlier`` first."""
    is_same = earlier.rank == later.rank and earlier.place.file == later.place.file
    return is_same and 0 < earlier.place.line < later.place.line
