"""Configurations as people write them, good and broken, each with the findings it must give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from allaboard.check.collect import Gathered, configuration_sources, from_files, resolve_material
from allaboard.check.run_rules import judge_configuration
from allaboard.facts import Finding, LocalHost, Material
from environments import read_environment

CORPUS = Path(__file__).parent / "corpus"
HOST = LocalHost(name="node9", interfaces=("eth0", "lo"), addresses=("10.0.0.9",), gpus=0)
DEBIAN = msgspec.structs.replace(HOST, named=("127.0.1.1",))


def cases() -> Iterator[tuple[Path, list[str]]]:
    for listing in sorted(CORPUS.rglob("EXPECTED")):
        for line in listing.read_text().splitlines():
            if line and not line.startswith("#"):
                name, _, codes = line.partition(":")
                yield listing.parent / name, codes.split()


def judged(path: Path) -> list[Finding]:
    if path.suffix == ".env":
        variables = read_environment(path)
        config = resolve_material(
            "environment", Material.from_environment(variables), configuration_sources()
        )
        host = DEBIAN if "DEBIAN" in variables else HOST
        return judge_configuration(Gathered([msgspec.structs.replace(config, host=host)]))
    if path.is_dir():
        return judge_configuration(from_files([str(p) for p in sorted(path.iterdir())]))
    return judge_configuration(from_files([str(path)]))


ALL = list(cases())


@pytest.mark.parametrize(
    ("path", "expected"), ALL, ids=[f"{p.parent.name}/{p.name}" for p, _ in ALL]
)
def test_each_gives_its_findings_and_no_other(path: Path, expected: list[str]) -> None:
    findings = judged(path)
    told = [f"{f.rule}:{f.where.line}" if f.where and f.where.line else f.rule for f in findings]
    assert sorted(told) == sorted(expected), [f"{f.where}: {f.summary}" for f in findings]
    for finding in findings:
        assert finding.evidence and finding.fix
        # Whatever stands in a file has its line and column; a file as a whole (binary, huge) has none.
        where = finding.where
        assert where is None or not where.line or where.column >= 1


def test_every_file_is_listed() -> None:
    listed = {path for path, _ in ALL}
    files = {p for p in CORPUS.glob("*/*") if p.name != "EXPECTED"}
    assert files == listed
    assert len(files) >= 60
