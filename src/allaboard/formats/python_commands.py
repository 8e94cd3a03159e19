"""How the command lines of Python and of torchrun are recognised."""

from __future__ import annotations

import re

PYTHON_PROGRAM = re.compile(r"(?:.*/)?python[0-9.]*\Z")
"""Matches the first word of a command that Python's interpreter runs."""
TORCHRUN_MODULES = ("torch.distributed.run", "torch.distributed.launch")
"""Modules that are torchrun under another name (``python -m``)."""
TORCHRUN_VALUELESS = frozenset(("standalone", "module", "m", "no_python", "run_path", "use_env"))
"""Flags of torchrun that take no value."""
