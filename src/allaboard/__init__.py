"""allaboard: distributed training that starts, or says which worker is missing and why.

In a script: `init_process_group`, `roll_call`, `RollCallError`, and the modules `tensorflow` and
`jax`. They are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from allaboard import jax, tensorflow
    from allaboard.dropin.error import RollCallError
    from allaboard.dropin.roll_call import Roster, roll_call
    from allaboard.dropin.torch import init_process_group

__version__ = "0.1.0"
__all__ = [
    "RollCallError",
    "Roster",
    "__version__",
    "init_process_group",
    "jax",
    "roll_call",
    "tensorflow",
]

_WHERE = {
    "RollCallError": "dropin.error",
    "Roster": "dropin.roll_call",
    "init_process_group": "dropin.torch",
    "jax": "",
    "roll_call": "dropin.roll_call",
    "tensorflow": "",
}


def __getattr__(name: str) -> object:
    """PEP 562: `import allaboard` itself loads nothing."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    if not _WHERE[name]:
        return importlib.import_module(f"{__name__}.{name}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
