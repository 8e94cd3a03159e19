"""Every package that allaboard brings along has a licence that goes with its own (Apache-2.0)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
FITTING = re.compile(
    r"apache|\bmit(-0|-cmu)?\b|\bbsd\b|\b[023]-clause|\b0?bsd|\bisc\b|\bpsf\b|python software foundation"
    r"|mpl|mozilla|unlicense|zlib"
    r"|cc0|hpnd|public domain|blueoak|cnri-python|lgpl|lesser general public|boost|bsl-1\.0",
    re.I,
)
COPYLEFT = re.compile(r"(?<!l)\b(?:a|s)?gpl|affero|(?<!lesser )general public licen[sc]e", re.I)
PROPRIETARY = ("nvidia-", "cuda-")
"""What a framework brings for the vendor's devices: its own users' affair."""


def _declared_licence(package: metadata.Distribution) -> str:
    """Return what the package says of its licence: an SPDX expression, else its classifiers, else text."""
    fields = package.metadata
    expression = fields.get("License-Expression")
    if expression:
        return str(expression)
    classifiers = [c for c in fields.get_all("Classifier") or () if c.startswith("License ::")]
    named = [c.rpartition(" :: ")[2] for c in classifiers if c.count("::") > 1]
    if named:
        return " OR ".join(named)
    return str(fields.get("License") or "").partition("\n")[0]


def _fits(licence: str) -> bool:
    """Return True if one of the alternatives has parts that all go with ours."""
    alternatives = re.split(r"\bOR\b", licence.replace("(", " ").replace(")", " "))
    return any(
        all(
            FITTING.search(part) is not None and COPYLEFT.search(part) is None
            for part in re.split(r"\bAND\b", alternative)
        )
        for alternative in alternatives
    )


def _with_dependencies(requirements: Iterable[str]) -> Iterator[metadata.Distribution]:
    """Yield the packages of these requirements that are installed, and those that they need."""
    queue, seen = [(Requirement(r), ("",)) for r in requirements], set()
    while queue:
        requirement, extras = queue.pop()
        marker = requirement.marker
        if marker is not None and not any(marker.evaluate({"extra": e}) for e in extras):
            continue
        key = requirement.name.lower().replace("_", "-"), frozenset(requirement.extras)
        if key in seen:
            continue
        seen.add(key)
        try:
            package = metadata.distribution(requirement.name)
        except metadata.PackageNotFoundError:
            continue
        yield package
        wanted = ("", *requirement.extras)
        queue += [(Requirement(r), wanted) for r in package.requires or ()]


CORE = tuple(PROJECT["dependencies"])
EXTRAS = tuple(r for group in PROJECT["optional-dependencies"].values() for r in group)


def test_what_is_always_installed() -> None:
    packages = list(_with_dependencies(CORE))
    missing = [r for r in CORE if not list(_with_dependencies([r]))]
    assert not missing, "not installed here"
    wrong = {p.name: _declared_licence(p) for p in packages if not _fits(_declared_licence(p))}
    assert not wrong


def test_what_the_extras_bring() -> None:
    licences = {p.name: _declared_licence(p) for p in _with_dependencies(EXTRAS)}
    wrong = {
        name: licence
        for name, licence in licences.items()
        if licence and not _fits(licence) and not name.lower().startswith(PROPRIETARY)
    }
    assert not wrong


@pytest.mark.parametrize(
    "licence",
    ["MIT", "BSD-3-Clause", "Apache-2.0", "MIT OR GPL-2.0-or-later", "MPL-2.0 AND MIT", "LGPL-2.1+",
     "Python Software Foundation License", "MIT License"],
)  # fmt: skip
def test_fitting(licence: str) -> None:
    assert _fits(licence)


@pytest.mark.parametrize(
    "licence",
    ["GPL-2.0-or-later", "GPL2+", "AGPL-3.0-only", "MIT AND GPL-3.0-only", "Other/Proprietary License", "",
     "GNU General Public License v2 or later (GPLv2+)", "SSPL-1.0"],
)  # fmt: skip
def test_not_fitting(licence: str) -> None:
    assert not _fits(licence)
