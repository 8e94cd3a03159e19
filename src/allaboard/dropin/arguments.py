"""Whether the framework's own call takes what a drop-in was given."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def accepts_arguments(call: Callable[..., Any], *positional: Any, **named: Any) -> bool:
    """Where it does not, its own TypeError says so: nobody is made to come for that."""
    try:
        inspect.signature(call).bind(*positional, **named)
    except TypeError:
        return False
    except ValueError:
        return True  # no signature is known
    return True
