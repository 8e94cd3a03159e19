"""Measure what the probe adds to a collective to know which parameter it is called with (NUM007).

python bench/tensor_numbers.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from allaboard import probe

JOB = Path(__file__).parent / "jobs" / "tensor_numbers.py"


def main() -> int:
    with tempfile.TemporaryDirectory() as boxes:
        environment = os.environ | {
            "ALLABOARD_BOX": boxes,
            "PYTHONPATH": str(Path(probe.__file__).parent / "start"),
        }
        shell = 'export ALLABOARD_PID=$$; exec "$0" "$@"'
        command = ["/bin/sh", "-c", shell, sys.executable, str(JOB)]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
