"""Metrics in the formats of Prometheus, through its own client library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from allaboard.faces.metrics.metric_table import STEP_SECONDS, JobPicture
from allaboard.faces.metrics.read_metrics import Family, read_families, safe_label


class _State(NamedTuple):
    run: str
    families: tuple[Family, ...]
    buckets: tuple[tuple[str, int], ...]
    sum_s: float


class RunCollector:
    """Holds the newest metrics, for scrapes from other threads."""

    def __init__(self) -> None:
        self._state: _State | None = None

    @property
    def has_picture(self) -> bool:
        """True once there is something to show."""
        return self._state is not None

    def set_picture(self, picture: JobPicture) -> None:
        """Show this picture from now on."""
        steps = picture.totals.step_seconds
        run = safe_label(picture.snapshot.run.job)
        self._state = _State(run, read_families(picture), steps.buckets, steps.sum_s)

    def collect(self) -> Iterator[Any]:
        """Yield the families, as the library's registry asks for them."""
        state = self._state  # one look: another thread may set the next one
        if state is None:
            return
        for metric, series in state.families:
            kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = kind(metric.name, metric.help, labels=("run", *metric.labels))
            for labels, value in series:
                family.add_metric((state.run, *labels), value)
            yield family
        histogram = HistogramMetricFamily(*STEP_SECONDS, labels=("run",))
        histogram.add_metric((state.run,), buckets=state.buckets, sum_value=state.sum_s)
        yield histogram


def make_registry(collector: RunCollector) -> Any:
    """Return a registry of this collector alone."""
    registry = CollectorRegistry()
    registry.register(collector)
    return registry
