"""Members run different versions of Python, of the framework or of a library under it.

## Why it matters
A framework's wire format, its operators' numerics and its pickles change between versions: some mixtures
fail with an error that names neither host, some hang in init, and some train with slightly
different results on each rank.

## What to do
Install the same environment on every host: one lock file, one container image by digest, or one
environment on a shared file system.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.evidence.differences import Difference, differences, side_by_side
from allaboard.facts import Claim, Evidence, JobView, Severity, Stage

BREAK = ("torch", "tensorflow", "jax", "jaxlib", "cuda")
"""Those whose mixture is known to break jobs; the others usually only matter for results."""


def check(view: JobView) -> Iterator[Claim]:
    for _, one in differences(view, lambda name: name.startswith("version ")):
        yield _claim(one)


def _claim(one: Difference) -> Claim:
    package = one.name.partition(" ")[2]
    breaks = "this is known to break jobs" if package in BREAK else "this may change results"
    hosts = ", ".join(sorted({m.who.host for m in one.members})[:4])
    return Claim(
        summary=f"{package} differs: {one.told}; {breaks}",
        who=tuple(m.who for m in one.members),
        evidence=(
            *(
                Evidence(f"{package} {value or 'not imported'}", m.who.host)
                for value, members in one.others
                for m in members[:3]
            ),
            Evidence(f"{package} {one.usual or 'not imported'}", "the others"),
        ),
        fix=f"make {hosts} like the others: "
        + (f"pip install {package}=={one.usual}" if package != "python" else f"python {one.usual}"),
        severity=Severity.WARNING,
    )


RULE = Rule(
    stage=Stage.CLUSTER,
    reads=JobView,
    check=check,
    fires_on={
        "one host was not upgraded": (
            side_by_side("version torch", "2.13.0", "2.13.0", "2.12.1", "2.13.0"),
            "torch differs: h2 (rank 2) has 2.12.1, the others 2.13.0; this is known to break jobs",
        ),
    },
    silent_on={"the same": side_by_side("version torch", "2.13.0", "2.13.0", "2.13.0", "2.13.0")},
    since="0.1",
    drill=("other-version", "other-numpy"),
)
