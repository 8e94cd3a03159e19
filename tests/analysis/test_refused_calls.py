"""What to do about an exception of a framework of which only its words are known."""

from __future__ import annotations

from allaboard.analysis.failures.library_errors import explain_library_error
from allaboard.facts import Frame, Raised

LIBRARY = Frame("/v/site-packages/torch/nn/parallel/distributed.py", 700, "__init__")
USER = Frame("/work/fit.py", 30, "main")


def fix_of(message: str) -> str:
    """Return what to do about a RuntimeError that DDP raises below the user's line."""
    error = Raised(
        type="RuntimeError", message=message, raised_at=0.0, where=USER, frames=(LIBRARY, USER)
    )
    failure = explain_library_error(error)
    return failure.fix if failure is not None else ""


def test_a_refused_call_is_looked_at() -> None:
    assert "what fit.py:30 in main passes" in fix_of("gadgets must be square, but got round ones")


def test_a_lost_peer_is_looked_for_in_the_logs_of_all() -> None:
    assert fix_of("expected an answer, but the gadget was closed by its peer").startswith("collect")
    assert fix_of("the gadget is gone").startswith("collect")
