"""What the script of a run looks like from its text alone, for faces that say it as notes."""

from __future__ import annotations

from allaboard.config.gather import Gathered, from_files
from allaboard.config.judge import judge
from allaboard.facts import Finding


def script_notes(path: str) -> list[Finding]:
    """The CODE family's findings on a script; none where it cannot be read."""
    try:
        scripts = from_files([path]).scripts
    except OSError:
        return []
    return judge(Gathered(scripts=scripts), select=("CODE", "CFG04"))
