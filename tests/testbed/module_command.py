"""Command lines that run a module of the test bed in a Python of its own."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = str(Path(__file__).parents[1])


def module_command(module: str) -> list[str]:
    """Return the command that runs ``module`` as a program; append its arguments.

    The Python is isolated (-I), so that nothing in the current folder or the user's site-packages
    is imported inside a namespace; this folder's parent is put on its path by hand.
    """
    code = (
        f"import runpy, sys; sys.path.insert(0, {TESTS!r}); "
        f"runpy.run_module({module!r}, run_name='__main__')"
    )
    return [sys.executable, "-I", "-c", code]
