"""Reads the metrics from a picture of the job, with labels that are safe and no series twice. Pure."""

from __future__ import annotations

from typing import NamedTuple

from allaboard.faces.metrics.metric_table import METRICS, JobPicture, Labels, Metric
from allaboard.report.plain_text import clean

MAX_LABEL_LENGTH = 120
"""Characters of a label value: names come from files and from other processes."""


class Family(NamedTuple):
    """One metric with its series."""

    metric: Metric
    """The metric."""
    series: tuple[tuple[Labels, float], ...]
    """Label values, in the order of ``metric.labels``, and the value."""


def read_families(picture: JobPicture) -> tuple[Family, ...]:
    """Return every metric that has a value."""
    families = []
    for metric in METRICS:
        series: dict[Labels, float] = {}
        for labels, value in metric.read(picture):
            safe = tuple(safe_label(label) for label in labels)
            number = float(value)
            # Two processes may have one name for a while: the one that is replaced, and the new one. Twice
            # the same series would make a scraper refuse them all.
            if safe in series:
                is_sum = metric.kind == "counter"
                number = series[safe] + number if is_sum else max(series[safe], number)
            series[safe] = number
        if series:
            families.append(Family(metric, tuple(series.items())))
    return tuple(families)


def safe_label(text: str) -> str:
    """Return the text as a label value: one line, no control characters, not too long."""
    text = clean(text)
    return text if len(text) <= MAX_LABEL_LENGTH else text[: MAX_LABEL_LENGTH - 1] + "…"
