"""Lists of hosts are expanded as the real `scontrol show hostnames` expands them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from allaboard.formats.slurm_hostlist import MAX_HOSTS, HostlistError, expand_hostlist

EXPANDED = {
    "a": "a",
    "a[1-3]": "a1 a2 a3",
    "n[08-10]": "n08 n09 n10",
    "n[8-010]": "n8 n9 n10",
    "n[099-101]": "n099 n100 n101",
    "r[0-1]n[1-2]": "r0n1 r0n2 r1n1 r1n2",
    "x[1-3]y[1-2]z[1-2]": "x1y1z1 x1y1z2 x2y1z1 x2y1z2 x3y1z1 x3y1z2 "
    "x1y2z1 x1y2z2 x2y2z1 x2y2z2 x3y2z1 x3y2z2",
    "a,b[1,3-4],c": "a b1 b3 b4 c",
    "n[1-2][3-4]": "n13 n14 n23 n24",
    "n[1,1]": "n1 n1",
    "[1-3]": "1 2 3",
    " a, b,,c": "a b c",
    "gpu-[001-003].big,login.big": "gpu-001.big gpu-002.big gpu-003.big login.big",
}  # fmt: skip
"""The last is none that Slurm takes as an argument: no text may follow a bracket there."""
REFUSED = ("n[3-1]", "n[]", "n[1,]", "n[a-b]", "n[1--3]", "n[[1]]", "n[-2]", "a[1-2]]", "n[1-2,]",
           "n[1-3", "n1-3]", f"n[1-{MAX_HOSTS + 1}]", "a[1-9999]b[1-9999]", "n[1-999999999999999999999]",
           "n[٣]", ",".join(f"a{i}[1-65536]" for i in range(3)))  # fmt: skip


@pytest.mark.parametrize("text", EXPANDED)
def test_is_expanded(text: str) -> None:
    assert expand_hostlist(text) == EXPANDED[text].split()


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(HostlistError):
        expand_hostlist(text)


def test_an_empty_list_has_no_hosts() -> None:
    assert expand_hostlist(" , ") == []


@pytest.mark.skipif(shutil.which("scontrol") is None, reason="needs Slurm")
def test_as_slurm_itself(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("ClusterName=x\nSlurmctldHost=localhost\n")
    environment = {**os.environ, "SLURM_CONF": str(tmp_path / "slurm.conf")}
    dice = random.Random(7)

    def bracket() -> str:
        lows = [dice.randint(0, 120) for _ in range(dice.randint(1, 3))]
        return ",".join(
            f"{low:0{dice.randint(1, 4)}}" + (f"-{low + dice.randint(0, 12)}" * dice.randint(0, 1))
            for low in lows
        )

    def word() -> str:
        return dice.choice(("n", "gpu-", "a.b", "")) + "x".join(
            f"[{bracket()}]" for _ in range(dice.randint(1, 3))
        )

    lists = [",".join(word() for _ in range(dice.randint(1, 3))) for _ in range(60)]
    for text in lists + [t for t in EXPANDED if not t.startswith("gpu")]:
        answer = subprocess.run(
            ["scontrol", "show", "hostnames", text],
            env=environment, capture_output=True, text=True, check=True, timeout=20,
        )  # fmt: skip
        assert expand_hostlist(text) == answer.stdout.split(), text
