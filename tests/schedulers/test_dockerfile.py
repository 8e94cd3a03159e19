"""The Dockerfile: what it copies is there, and is all that the wheel is built from. (No engine builds it.)"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "contrib" / "docker" / "Dockerfile").read_text()
BUILD, FINAL = re.split(r"^FROM ", TEXT, flags=re.M)[1:]


def copied(stage: str) -> list[str]:
    lines = re.findall(r"^COPY (?!--from)(.+)$", stage, re.M)
    return [word for line in lines for word in line.split()[:-1]]


def test_what_is_copied_is_in_the_repository() -> None:
    assert copied(BUILD) and [p for p in copied(BUILD) if not (ROOT / p).exists()] == []


def test_the_wheel_has_all_that_its_build_reads() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = ["pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]]
    needed += [*wheel["packages"], *wheel["shared-data"], *wheel["force-include"]]
    there = copied(BUILD)
    assert [n for n in needed if not any(n == p or n.startswith(f"{p}/") for p in there)] == []


def test_the_final_image_has_no_sources_and_no_root() -> None:
    assert copied(FINAL) == []
    assert re.search(r"^USER [1-9]\d*$", FINAL, re.M)
    assert 'ENTRYPOINT ["allaboard"]' in FINAL
    assert len(re.findall(r"^FROM python:3\.11-slim", TEXT, re.M)) == 2
