"""Members run different versions of Python, of the framework or of a library under it.

## Why it matters
A framework's wire format, its operators' numerics and its pickles change between versions. Some mixtures
fail with an error that names neither host, some hang in init, and some train with slightly different
results on each rank.

## What to do
Install the same environment on every host: one lock file, one container image by digest, or one environment
on a shared file system.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.analysis.configuration.environment_drift import (
    FactDifference,
    example_side_by_side,
    find_fact_differences,
    group_by_members,
)
from allaboard.contracts import Rule
from allaboard.facts import Claim, Evidence, JobView, Severity

BREAKING_PACKAGES = ("torch", "tensorflow", "jax", "jaxlib", "cuda")
"""Packages of which mixed versions are known to break jobs; others usually affect only results."""


def check(view: JobView) -> Iterator[Claim]:
    version_differences = find_fact_differences(view, lambda name: name.startswith("version "))
    for package_differences in group_by_members(version_differences, _importance):
        yield _claim(package_differences)


def _importance(name: str) -> int:
    """Return the rank of a package, the most important first: Python brings its own of everything."""
    package = name.partition(" ")[2]
    return 0 if package == "python" else 1 if package in BREAKING_PACKAGES else 2


def _claim(package_differences: tuple[FactDifference, ...]) -> Claim:
    main = package_differences[0]
    package = _package_name(main)
    other_packages = ", ".join(map(_package_name, package_differences[1:]))
    also = f"; and {other_packages}" if other_packages else ""
    breaking = any(_package_name(d) in BREAKING_PACKAGES for d in package_differences)
    breaks = "this is known to break jobs" if breaking else "this may change results"
    hosts = ", ".join(sorted({m.who.host for m in main.members})[:4])
    return Claim(
        summary=f"{package} differs: {main.description}{also}; {breaks}",
        who=tuple(m.who for m in main.members),
        evidence=(
            *(
                Evidence(f"{_package_name(d)} {value or 'not imported'}", m.who.host)
                for d in package_differences
                for value, members in d.deviations
                for m in members[:3]
            ),
            *(
                Evidence(f"{_package_name(d)} {d.majority_value or 'not imported'}", "the others")
                for d in package_differences
            ),
        ),
        fix=f"make {hosts} like the others: "
        + (
            f"pip install {package}=={main.majority_value}"
            if package != "python"
            else f"python {main.majority_value}"
        ),
        severity=Severity.WARNING,
    )


def _package_name(difference: FactDifference) -> str:
    return difference.name.partition(" ")[2]


RULE = Rule(
    reads=JobView,
    check=check,
    fires_on={
        "one host has an older version of torch": (
            example_side_by_side("version torch", "2.13.0", "2.13.0", "2.12.1", "2.13.0"),
            "torch differs: h2 (rank 2) has 2.12.1, the others 2.13.0; this is known to break jobs",
        ),
        "one host has another Python, and so another torch and NumPy": (
            example_side_by_side(
                "version numpy",
                "2.4.6",
                "2.3.5",
                "2.4.6",
                "2.4.6",
                version_python=("3.11.7", "3.12.1", "3.11.7", "3.11.7"),
                version_torch=("2.13.0", "2.12.1", "2.13.0", "2.13.0"),
            ),
            "python differs: h1 (rank 1) has 3.12.1, the others 3.11.7; and torch, numpy; this "
            "is known to break jobs",
        ),
    },
    silent_on={
        "all hosts have the same version of torch": example_side_by_side(
            "version torch", "2.13.0", "2.13.0", "2.13.0", "2.13.0"
        )
    },
    drill=("other-version", "other-numpy", "other-python"),
)
