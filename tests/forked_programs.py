"""What programs raise that need a framework: it takes seconds to load, so each is a fork of one process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ONE_AFTER_ANOTHER = """
import json, os, sys
preload, programs = json.load(sys.stdin)
exec(preload, {})
for name, code in programs.items():
    if not os.fork():
        said = ""
        try:
            exec(code, {})
        except Exception as e:
            said = str(e)
        with open(name, "w") as file:
            file.write(said)
        os._exit(0)
    os.wait()
"""


def raised_by(folder: Path, preload: str, programs: Sequence[str]) -> dict[str, str]:
    """Return what each of the programs raises, by its text; "" for nothing.

    ``preload`` runs once, before all of them: imports, and nothing that starts a thread or makes a group.
    """
    answers = {str(folder / str(n)): code for n, code in enumerate(programs)}
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ONE_AFTER_ANOTHER],
        input=json.dumps([preload, answers]),
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "JAX_PLATFORMS": "cpu"},
        check=True,
    )
    return {code: Path(name).read_text().strip() for name, code in answers.items()}
