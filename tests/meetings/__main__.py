"""`PYTHONPATH=tests python -m meetings [WORD ...]`: stage the meetings whose names have all these words."""

from __future__ import annotations

import sys

from meetings.run_meeting import stage
from meetings.ways import meetings


def main(words: list[str]) -> int:
    """Return 1 if a meeting was not healthy, else 0."""
    worst = 0
    for name, place in meetings():
        if not all(word in f"{name} {place.name}" for word in words):
            continue
        meeting = stage(name, place)
        is_good = meeting.is_healthy and meeting.held_s <= 1.0
        worst |= not is_good
        print(
            f"{name:<24} {place.name:<10} {'ok' if is_good else 'BAD':<4} codes {meeting.codes} "
            f"held {meeting.held_s:.2f} s {' '.join(meeting.findings)}",
            flush=True,
        )
        if not is_good:
            print(meeting.output, flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
