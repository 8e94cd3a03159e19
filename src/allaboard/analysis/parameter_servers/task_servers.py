"""Tasks of TensorFlow whose process lives without the server that the other tasks need. Pure."""

from __future__ import annotations

from allaboard.analysis.parameter_servers.task_roles import only_serves
from allaboard.facts import JobView, Member

UNSERVED_NOTE = "nothing listens at"
"""Note with the address of a task at which nothing of its host listens, though other tasks are connected."""


def members_without_server(view: JobView) -> tuple[Member, ...]:
    """Return the live members that have no server at their address."""
    return tuple(
        m
        for m in view.alive
        if UNSERVED_NOTE in m.notes and not m.is_stopped and not only_serves(m)
    )
