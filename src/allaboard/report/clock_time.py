"""The time of day in front of every line that allaboard writes while a job runs.

It is the local one, as in the lines of the frameworks beside it; the journal and the report have UTC.
"""

from __future__ import annotations

from datetime import datetime


def clock_time(utc: str) -> str:
    """Return ``14:03:07``, the local time of day of an ISO 8601 time; "" if there is none."""
    try:
        return datetime.fromisoformat(utc).astimezone().strftime("%H:%M:%S")
    except ValueError:
        return ""


def note_line(text: str, utc: str) -> str:
    """Return a note as it is printed: ``allaboard 14:03:07: text``."""
    return f"allaboard {clock_time(utc)}: {text}"
