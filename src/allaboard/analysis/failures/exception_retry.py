"""What an exception of a member's own says about trying the job again. Pure."""

from __future__ import annotations

from allaboard.analysis.failures.known_errors import known_remedy
from allaboard.analysis.failures.library_errors import MISTAKE_TYPES, explain_library_error
from allaboard.facts import Raised
from allaboard.facts.outcome import Retry
from allaboard.late_pattern import compile_late

_MAY_PASS = compile_late(
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
