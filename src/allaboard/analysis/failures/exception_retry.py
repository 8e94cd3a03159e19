"""What an exception of a member's own says about trying the job again. Pure."""

from __future__ import annotations

import re

from allaboard.analysis.failures.known_errors import known_remedy
from allaboard.analysis.failures.library_errors import explain_library_error
from allaboard.facts import Raised
from allaboard.facts.outcome import Retry

MISTAKE_TYPES = frozenset(
    (
        "ArgumentError", "AssertionError", "AttributeError", "BdbQuit", "ImportError", "IndentationError",
        "IndexError", "KeyError", "ModuleNotFoundError", "NameError", "NotImplementedError",
        "RecursionError", "SyntaxError", "TabError", "TypeError", "UnboundLocalError",
        "UnicodeDecodeError", "UsageError", "ValueError", "ZeroDivisionError",
    )
)  # fmt: skip
"""Built-in exceptions of a mistake in the program or in its input. Those of files, networks and native code
(OSError, TimeoutError, RuntimeError) may pass, and so may any type that is not known."""
_MAY_PASS = re.compile(
    r"Max retries exceeded|name resolution|couldn't connect to|[Cc]onnection (?:reset|refused|closed|aborted)"
    r"|[Tt]imed? ?out|temporarily unavailable|Stale file handle|Input/output error"
    r"|invalid device ordinal|no GPUs found|driver (?:on your system|version)|CUDA driver"
)
"""Words of faults that may be gone the next time, whatever type carries them: of networks, of shared disks,
and of a host that has lost a GPU, as one does that fell off the bus."""


def retry_of_exception(error: Raised) -> Retry:
    """Return what this exception says about trying the job again; "here" if it says nothing."""
    library_failure = explain_library_error(error)
    if library_failure is not None:
        return library_failure.retry
    if _MAY_PASS.search(error.message):
        return Retry.HERE
    is_mistake = error.type.rpartition(".")[2] in MISTAKE_TYPES
    return Retry.NEVER if is_mistake or known_remedy(error) is not None else Retry.HERE
