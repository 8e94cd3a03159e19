"""Series of large runs as they are recorded: ranks come one by one, one host is slow, one rank stops."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec

from allaboard.facts import Activity
from allaboard.feed.series import ACTIVITIES, SERIES_NAME, SeriesMembers, SeriesPoint

STOPPED_RANK = 1
FULL_RANK = 5
"""Rank whose memory grows."""
RANKS_PER_HOST = 8
SLOW_HOST = 2
"""Its ranks wait least: the others wait for them."""
STEP_MS = 1400.0


def write_large_series(
    folder: Path, ranks: int, duration_s: float = 3600.0, points: int = 1800, stops: bool = True
) -> None:
    """Write the series of a run. Steps take longer than a second, so each rank is seen now training and now
    waiting, and hardly any two have the same course."""
    dice = random.Random(7)
    number = {activity: ACTIVITIES.index(activity) for activity in Activity}
    comes_at = [dice.uniform(5.0, 60.0) for _ in range(ranks)]
    usual_share = [dice.uniform(0.2, 0.3) for _ in range(ranks)]
    lines: list[SeriesMembers | SeriesPoint] = [
        SeriesMembers(
            names=tuple(f"worker {n}" for n in range(ranks)),
            ranks=tuple(range(ranks)),
            pids=tuple(100 + n for n in range(ranks)),
            rank_hosts=tuple(f"node-{n // RANKS_PER_HOST}" for n in range(ranks)),
            hosts=tuple(f"node-{n}" for n in range((ranks + 7) // RANKS_PER_HOST)),
        )
    ]
    stands_from_s = duration_s * (0.8 if stops else 2.0)
    for point in range(points):
        at_s = point * duration_s / points
        trained_s = max(0.0, min(at_s, stands_from_s) - 60.0)
        stands, saves = at_s >= stands_from_s, at_s > 120 and at_s % 600 < 20
        activity, waiting, memory = [], [], []
        for rank in range(ranks):
            is_slow = rank // RANKS_PER_HOST == SLOW_HOST
            if at_s < comes_at[rank]:
                doing = Activity.IMPORTING
            elif at_s < 60.0:
                doing = Activity.JOINING
            elif stands:
                doing = Activity.STOPPED if rank == STOPPED_RANK else Activity.WAITING
            elif saves:
                doing = Activity.CHECKPOINT
            else:
                doing = Activity.WAITING if dice.random() < usual_share[rank] else Activity.TRAINING
            activity.append(number[doing])
            share = 0.02 if is_slow else usual_share[rank] + dice.uniform(-0.03, 0.03)
            waiting.append(round(0.98 if stands else share, 2) if at_s >= 60.0 else 0.0)
            growth = 6000.0 * at_s / duration_s if rank == FULL_RANK else 0.0
            memory.append(round(2000.0 + growth + dice.uniform(-20, 20), 1))
        lines.append(
            SeriesPoint(
                taken_at="2026-11-25T12:00:00Z",
                elapsed_s=round(at_s, 2),
                step=(int(trained_s * 1e3 / STEP_MS),) * ranks,
                step_ms=tuple(
                    round(STEP_MS + dice.gauss(0, 15), 2) if trained_s else 0.0
                    for _ in range(ranks)
                ),
                activity=tuple(activity),
                waiting=tuple(waiting),
                input=(0.03,) * ranks,
                loss=(round(3.0 / (1 + trained_s / 600), 4),) * ranks,
                cpu=tuple(round(dice.uniform(0.8, 1.0), 2) for _ in range(ranks)),
                memory_mb=tuple(memory),
                host_cpu=(7.5,) * ((ranks + 7) // RANKS_PER_HOST),
            )
        )
    (folder / SERIES_NAME).write_bytes(b"".join(msgspec.json.encode(x) + b"\n" for x in lines))
