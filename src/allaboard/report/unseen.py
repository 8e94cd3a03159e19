"""What could not be seen of a run: hooks that found nothing to hold on to. No alarm, but told."""

from __future__ import annotations

from allaboard.facts import BOX, JobView

HOOK_NOTE_PREFIX = "hook "
"""How the note of a hook that failed begins, in the black box; the module follows."""
MAX_SHOWN_MEMBERS = 4


def unseen_lines(view: JobView) -> tuple[str, ...]:
    """A sentence for each hook that failed and each black box that cannot be read, with the members of
    whom that is so."""
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
