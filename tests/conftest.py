"""Options of the test suite: `--long`; and with CI=true a skip for a missing part is a failure."""

from __future__ import annotations

import os

import pytest

HERE_ONLY = "not on this machine"
"""Begins the reason of a skip that another machine would not have; the only kind that CI accepts."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long tests too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--long"):
        return
    chosen = [i for i in items if i.get_closest_marker("long") is None]
    config.hook.pytest_deselected(items=[i for i in items if i not in chosen])
    items[:] = chosen


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("CI") == "true":
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else "")
        if HERE_ONLY not in reason:
            report.outcome = "failed"
            report.longrepr = f"skipped in CI, where nothing may be missing: {reason}"
