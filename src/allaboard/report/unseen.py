"""What could not be seen of a run: hooks that failed, and black boxes that cannot be read."""

from __future__ import annotations

from allaboard.facts import BOX, JobView

HOOK_NOTE_PREFIX = "hook "
"""Begins the note of a failed hook in the black box; the module follows."""
MAX_SHOWN_MEMBERS = 4
"""Members that a line names before the rest is counted."""


def unseen_lines(view: JobView) -> tuple[str, ...]:
    """Return a sentence for each hook that failed and each black box that cannot be read, with the members
    concerned."""
    members_by_trouble: dict[
        tuple[str, str], dict[str, None]
    ] = {}  # a rank and its parent have one name
    for member in view.members:
        for key, trouble in member.notes.items():
            if key.startswith(HOOK_NOTE_PREFIX) or key == BOX:
                subject = "" if key == BOX else f" {key.removeprefix(HOOK_NOTE_PREFIX)}"
                members_by_trouble.setdefault((subject, trouble), {})[member.who.name] = None
    return tuple(
        f"what{subject} does, in {_list_members(list(members))}: {trouble}"
        if subject
        else f"what it does itself, of {_list_members(list(members))}: {trouble}"
        for (subject, trouble), members in sorted(members_by_trouble.items())
    )


def _list_members(members: list[str]) -> str:
    more = (
        f" and {len(members) - MAX_SHOWN_MEMBERS} more" if len(members) > MAX_SHOWN_MEMBERS else ""
    )
    return ", ".join(members[:MAX_SHOWN_MEMBERS]) + more
