"""What could not be seen of a run: hooks that found nothing to hold on to. No alarm, but told."""

from __future__ import annotations

from allaboard.facts import BOX, JobView

HOOK = "hook "
"""How the note of a hook that failed begins, in the black box; the module follows."""
SHOWN = 4


def unseen(view: JobView) -> tuple[str, ...]:
    """A sentence for each hook that failed and each black box that cannot be read, with the members of
    whom that is so."""
    found: dict[tuple[str, str], dict[str, None]] = {}  # a rank and its parent have one name
    for member in view.members:
        for key, trouble in member.notes.items():
            if key.startswith(HOOK) or key == BOX:
                what = "" if key == BOX else f" {key.removeprefix(HOOK)}"
                found.setdefault((what, trouble), {})[member.who.name] = None
    return tuple(
        f"what{what} does, in {_named(list(members))}: {trouble}"
        if what
        else f"what it does itself, of {_named(list(members))}: {trouble}"
        for (what, trouble), members in sorted(found.items())
    )


def _named(members: list[str]) -> str:
    more = f" and {len(members) - SHOWN} more" if len(members) > SHOWN else ""
    return ", ".join(members[:SHOWN]) + more
