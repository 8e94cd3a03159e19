"""A run for other viewers: its stacks for speedscope, its timeline for Perfetto."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from allaboard import __version__
from allaboard.faces.report.flame_graph import collapsed_stacks
from allaboard.faces.report.numbered_findings import seconds_between
from allaboard.faces.report.timeline import lane_ranks
from allaboard.facts import Branch
from allaboard.feed.run_record import RunRecord

MICROSECONDS = 1e6


def as_speedscope(tree: Sequence[Branch], name: str) -> str:
    """Return merged stacks in speedscope's format: every rank is one sample.

    The format is that of https://www.speedscope.app/file-format-schema.json.
    """
    numbers: dict[tuple[str, str, int], int] = {}
    frames: list[dict[str, Any]] = []
    samples: list[list[int]] = []
    weights: list[int] = []
    for calls, count in collapsed_stacks(tree):
        sample = []
        for call in calls:
            key = (call.function, call.file, call.line)
            if key not in numbers:
                numbers[key] = len(frames)
                frames.append({"name": call.function, "file": call.file, "line": call.line})
            sample.append(numbers[key])
        samples.append(sample)
        weights.append(count)
    profile = {
        "type": "sampled",
        "name": f"ranks of {name}",
        "unit": "none",
        "startValue": 0,
        "endValue": sum(weights),
        "samples": samples,
        "weights": weights,
    }
    return _json(
        {
            "$schema": "https://www.speedscope.app/file-format-schema.json",
            "exporter": f"allaboard {__version__}",
            "name": name,
            "activeProfileIndex": 0,
            "shared": {"frames": frames},
            "profiles": [profile],
        }
    )


def as_perfetto(record: RunRecord) -> str:
    """Return the timeline as Chrome's trace events, which ui.perfetto.dev opens.

    Every course of ranks is a track, every plot a counter, and every finding an instant; times are in
    microseconds since the run began.
    """
    return _json({"displayTimeUnit": "ms", "traceEvents": list(_events(record))})


def _events(record: RunRecord) -> Iterator[dict[str, Any]]:
    yield _name_event("process_name", 0, record.snapshot.run.job)
    for track, lane in enumerate(record.course.lanes, 1):
        yield _name_event("thread_name", track, lane_ranks(lane))
        for span in lane.spans:
            yield {
                "ph": "X", "pid": 1, "tid": track, "name": span.activity, "cat": "activity",
                "ts": span.begin_s * MICROSECONDS,
                "dur": (span.end_s - span.begin_s) * MICROSECONDS,
            }  # fmt: skip
    for point in record.course.points:
        counters = {
            "steps per second": point.steps_per_s,
            "step time (ms)": None if point.step_s is None else point.step_s * 1e3,
            "waiting": point.waiting,
            "loss": point.loss,
            "CPU cores": point.cpu,
            "memory (MB)": point.memory_nbytes / 1e6,
        }
        for name, value in counters.items():
            if value is not None:
                yield {
                    "ph": "C", "pid": 1, "name": name, "ts": point.elapsed_s * MICROSECONDS,
                    "args": {name: value},
                }  # fmt: skip
    for finding in record.findings:
        after_s = seconds_between(record.snapshot.run.started, finding.at)
        if after_s is not None:
            yield {
                "ph": "i", "s": "g", "pid": 1, "tid": 0, "cat": finding.severity,
                "name": f"{finding.rule} {finding.name}", "ts": after_s * MICROSECONDS,
                "args": {"summary": finding.summary, "fix": finding.fix},
            }  # fmt: skip


def _name_event(kind: str, track: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 1, "tid": track, "name": kind, "args": {"name": name}}


def _json(content: object) -> str:
    return msgspec.json.encode(content).decode() + "\n"
