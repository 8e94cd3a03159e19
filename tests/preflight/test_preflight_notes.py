"""What is wrong in the environment is told once, by the name that the user gave it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

WRONG = {
    "JAX_COORDINATOR_ADDRESS": "[fe80::1]:29511",  # without its interface: leads nowhere
    "JAX_NUM_PROCESSES": "2",
    "JAX_PROCESS_ID": "1",
}


def test_an_address_of_jax_is_not_told_as_another_frameworks(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "allaboard", "preflight", "--timeout", "1", "--run-dir"]
    usual = {k: v for k, v in os.environ.items() if not k.startswith(("MASTER_", "RANK", "WORLD_"))}
    subprocess.run(
        [*words, str(tmp_path / "run")],
        env=usual | WRONG,
        capture_output=True,
        timeout=60,
        check=False,
    )
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    told = [f["summary"].split()[0] for f in report["findings"] if f["rule"] == "CFG015"]
    assert told == ["JAX_COORDINATOR_ADDRESS"]
