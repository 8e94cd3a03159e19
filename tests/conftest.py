"""Options of the test suite: `--long`; with CI=true a skip for a missing part is a failure; and a test
that wants the machine for itself gets it, however many run side by side."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from probed import Program

collect_ignore = ["corpus", "scripts"]
"""Folders of scripts that users wrote, whatever they are called: they are read, and never run."""
HERE_ONLY = "not on this machine"
"""Begins the reason of a skip that another machine would not have; the only kind that CI accepts."""


# Findings are wrapped at words to the width of the output. Tests look for whole sentences in what the
# commands print; how lines are wrapped has tests of its own.
REPORT_COLUMNS = shutil.get_terminal_size().columns
"""Columns of pytest's own report, which would go by the variable as well."""
os.environ["COLUMNS"] = "1000"

# What a shell starts in the background is deaf to Ctrl-C, and so would be all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# So is what nohup(1) starts to a terminal that closes.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("busy")


@pytest.hookimpl(trylast=True)  # the reporter is made in another one
def pytest_configure(config: pytest.Config) -> None:
    if config.pluginmanager.has_plugin("terminalreporter"):
        config.get_terminal_writer().fullwidth = REPORT_COLUMNS


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the long tests too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=_turn)
    if config.getoption("--long"):
        return
    deselected = [i for i in items if i.get_closest_marker("long") is not None]
    config.hook.pytest_deselected(items=deselected)
    items[:] = [i for i in items if i.get_closest_marker("long") is None]


def _turn(item: pytest.Item) -> tuple[bool, float]:
    """Those that may take longest begin, so that no core waits for them in the end; those that run alone
    come last, so that all others wait for them once."""
    own = item.get_closest_marker("timeout")
    limit = float(own.args[0]) if own is not None and own.args else 0.0
    return item.get_closest_marker("alone") is not None, -limit


ROOM = Path(__file__)
"""Locked by whoever runs a test: shared, or by one alone. A file that is there anyway."""
DOOR = ROOM.parent
"""Locked by whoever waits for the room, so that the next ones do not slip in before."""


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, how)
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)  # also for what a test forked and left behind
        os.close(handle)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """A test marked ``alone`` runs when no other does. Waiting for that is no part of its timeout."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    alone = item.get_closest_marker("alone") is not None
    with ExitStack() as stack:
        with _locked(DOOR, fcntl.LOCK_EX):
            stack.enter_context(_locked(ROOM, fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
        return (yield)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
    outcome = yield
    report = outcome.get_result()
    if report.skipped and os.environ.get("CI") == "true":
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else "")
        if HERE_ONLY not in reason:
            report.outcome = "failed"
            report.longrepr = f"skipped in CI, where nothing may be missing: {reason}"


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """A Python program under the probe."""
    one = Program(tmp_path)
    yield one
    one.close()
