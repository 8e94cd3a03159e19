"""The line at the bottom of the terminal: whom the job waits for, while it waits. Pure."""

from __future__ import annotations

from allaboard.analysis.roll_call.waiting_message import describe_progress, waiting_message
from allaboard.analysis.stalls.expected_pauses import pause_line
from allaboard.facts import JobView, Phase


def progress_line(view: JobView) -> str:
    """Return who has come, who is missing and where they are; or for how long nothing has moved. "" if the
    job moves."""
    members = [m for m in view.members if not m.launcher]
    if text := waiting_message(view):
        return text
    starting = [m for m in members if m.in_user_code and not m.candidate]
    if view.rolled_at is None and starting:
        seconds = view.now - view.launched_at
        positions = "; ".join(describe_progress(m) for m in starting[:2])
        return f"0 of {len(members)} ready, {seconds:.0f} s: {positions}"
    if view.stalled:
        stalled_for = f"{view.now - view.progress_at:.0f} s"
        if line := pause_line(view):
            return f"{line} for {stalled_for}"
        if all(m.phase is Phase.LEAVING for m in members if m.alive):
            # The destructors of a framework take seconds where ranks share a busy processor.
            return f"all workers are exiting, for {stalled_for}"
        if any(m.stack is None for m in members if m.alive):
            return f"no progress for {stalled_for}; collecting stack traces"
        return f"no progress for {stalled_for}"
    return ""
