"""Whether the framework's own call accepts the arguments of a drop-in."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def accepts_arguments(call: Callable[..., Any], *positional: Any, **named: Any) -> bool:
    """Return False if the call would raise a TypeError for these arguments. Then no member is made to wait
    for it: the call is made, and its own error says what is wrong."""
    try:
        inspect.signature(call).bind(*positional, **named)
    except TypeError:
        return False
    except ValueError:
        return True  # no signature is known
    return True
