"""What could not be seen of a run: hooks that found nothing to hold on to. No alarm, but told."""

from __future__ import annotations

from allaboard.facts import JobView

HOOK = "hook "
"""How the note of a hook that failed begins, in the black box; the module follows."""
SHOWN = 4


def unseen(view: JobView) -> tuple[str, ...]:
    """A sentence for each hook that failed, with the members it failed in."""
    found: dict[tuple[str, str], list[str]] = {}
    for member in view.members:
        for key, trouble in member.notes.items():
            if key.startswith(HOOK):
                module = key.removeprefix(HOOK)
                who = member.who.name
                found.setdefault((module, trouble), []).append(who)
    return tuple(
        f"what {module} does, in {_named(members)}: {trouble}"
        for (module, trouble), members in sorted(found.items())
    )


def _named(members: list[str]) -> str:
    more = f" and {len(members) - SHOWN} more" if len(members) > SHOWN else ""
    return ", ".join(members[:SHOWN]) + more
