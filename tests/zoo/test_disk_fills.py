"""A file system of its own that a real job fills: it is said before it is full."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from reported import ALLABOARD

pytestmark = [pytest.mark.zoo, pytest.mark.timeout(400)]
IN_A_MOUNT_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount", "--fork", "--kill-child")
TRAIN = """
import sys, time, torch, torch._dynamo, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(8, 8))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for step in range(300):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).pow(2).sum().backward()
    optimizer.step()
    if dist.get_rank() == 1 and (step < 20 or "fills" in sys.argv):
        with open("checkpoint", "ab") as file:
            file.write(bytes(300_000))
    time.sleep(0.1)
"""


def run(folder: Path, *arguments: str) -> str:
    """What allaboard says of a job whose working folder is a small file system."""
    probe = subprocess.run([*IN_A_MOUNT_NAMESPACE, "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("this kernel lets nobody mount in a namespace of their own")
    (folder / "train.py").write_text(TRAIN)
    disk = folder / "disk"
    disk.mkdir()
    job = shlex.join([*ALLABOARD, "run", "-n", "2", "--warm", str(folder / "train.py"), *arguments])
    script = f"mount -t tmpfs -o size=120m none {shlex.quote(str(disk))} && cd disk && exec {job}"
    done = subprocess.run(
        [*IN_A_MOUNT_NAMESPACE, "sh", "-c", script],
        cwd=folder, capture_output=True, text=True, timeout=360, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return " ".join(done.stderr.split())


def test_a_disk_that_fills_is_said_before_it_is_full(tmp_path: Path) -> None:
    said = run(tmp_path, "fills")
    assert re.search(rf"RES004 disk: {tmp_path}/disk on \S+ will be full in about \d+ s", said), (
        said
    )
    assert f"df -h {tmp_path}/disk" in said


def test_a_checkpoint_on_a_small_disk_is_no_finding(tmp_path: Path) -> None:
    assert "RES004" not in run(tmp_path)
