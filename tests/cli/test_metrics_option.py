"""`--metrics` and `--metrics-file` on the command line: what they take, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.cli import watch
from allaboard.options.command_parser import build_parser
from allaboard.options.metrics_options import choose_metrics
from allaboard.options.reporting import choose_reporters
from allaboard.options.run_options import add_arguments
from allaboard.options.usage_error import UsageError


def choose(*words: str) -> object:
    return choose_metrics(build_parser("run", add_arguments).parse_checked_arguments(words))


def test_without_the_options_nothing_is_reported() -> None:
    options = build_parser("run", add_arguments).parse_checked_arguments([])
    assert choose_metrics(options) is None and choose_reporters(options, None, {}) == ()


def test_the_address_and_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
    from allaboard.faces.metrics.metrics_settings import MetricsSettings

    assert choose("--metrics", "9400") == MetricsSettings(host="127.0.0.1", port=9400)
    assert choose("--metrics", "[::1]:0") == MetricsSettings(host="::1", port=0)
    monkeypatch.chdir(tmp_path)
    assert choose("--metrics-file", "a.prom") == MetricsSettings(file=f"{tmp_path}/a.prom")
    for words, message in [
        (("--metrics", "node0"), "expected a port or HOST:PORT"),
        (("--metrics", "h:99999"), "expected a port or HOST:PORT"),
        (("--metrics-file", "a.txt"), r"end in .prom: --metrics-file a.prom"),
        (("--metrics-file", "no/a.prom"), "there is no folder no"),
    ]:
        with pytest.raises(UsageError, match=message):
            choose(*words)


def test_watch_reports_for_as_long_as_the_run_lasts() -> None:
    with pytest.raises(UsageError, match="leave out --once"):
        watch.main(["--metrics", "9400", "--once"])
