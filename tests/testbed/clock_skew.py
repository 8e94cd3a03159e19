"""A host whose wall clock is wrong.

The kernel gives a namespace its own monotonic clock, never its own wall clock: a preloaded library
(libfaketime) answers the processes' calls instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from testbed.requirements import fake_clock


def skewed(environment: Mapping[str, str], seconds: float) -> dict[str, str]:
    """The environment of processes whose wall clock is ahead (or, negative, behind).

    Raises FileNotFoundError where the library is not installed.
    """
    library = fake_clock()
    if library is None:
        raise FileNotFoundError("no libfaketime: apt-get install faketime")
    before = environment.get("LD_PRELOAD")
    return {
        **environment,
        "LD_PRELOAD": f"{library}:{before}" if before else str(library),
        "FAKETIME": f"{seconds:+g}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_NO_CACHE": "0",
    }
