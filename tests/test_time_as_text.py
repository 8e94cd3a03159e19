"""Times as text, also those that no calendar has."""

from __future__ import annotations

import math

import pytest

from allaboard.clock import FakeClock


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.5, "1970-01-01T00:00:01.500Z"),
        (-1e18, "1970-01-01T00:00:00.000Z"),
        (math.nan, "1970-01-01T00:00:00.000Z"),
        (1e300, "9999-12-31T00:00:00.000Z"),
        (math.inf, "9999-12-31T00:00:00.000Z"),
    ],
)
def test_a_time_that_cannot_be_is_the_nearest_that_can(seconds: float, text: str) -> None:
    assert FakeClock().utc(seconds) == text
