"""DDP's error about parameters without a gradient in the previous step: its line is not to blame.

The wording is that of PyTorch 2.13 (torch/csrc/distributed/c10d/reducer.cpp).
"""

from __future__ import annotations

import re

from allaboard.facts import Raised

_UNUSED_PARAMETERS = "Expected to have finished reduction in the prior iteration"
_PARAMETER_NAMES = re.compile(
    r"(Parameter indices|Parameters) which did not receive grad for rank \d+: ([^\n]+)"
)


def parameters_without_gradient(error: Raised) -> str | None:
    """Return the parameters as DDP names them ("parameters 2 3", "parameters aux.weight").

    Return "parameters" if DDP names none, and None for another error.
    """
    if _UNUSED_PARAMETERS not in error.message:
        return None
    match = _PARAMETER_NAMES.search(error.message)
    return f"parameters {match[2].strip()}" if match is not None else "parameters"
