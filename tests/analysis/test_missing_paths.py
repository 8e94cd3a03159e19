"""A path that a library could not open, and exceptions that look similar."""

from __future__ import annotations

import pytest

from allaboard.analysis.failures.known_errors import missing_path_advice
from allaboard.facts import Frame, Raised

LIBRARY = Frame("/v/site-packages/torch/distributed/checkpoint/filesystem.py", 521, "read_metadata")
USER = Frame("/work/resume.py", 57, "main")


def raised(message: str, frame: Frame = LIBRARY) -> Raised:
    """Return an exception that this frame raised."""
    return Raised(type="OSError", message=message, raised_at=0.0, frames=(frame, USER))


def test_it_is_looked_at_on_its_host_and_on_another() -> None:
    advice = missing_path_advice(raised("[Errno 2] No such file or directory: '/local/my run/a'"))
    assert advice.startswith("ls -ld '/local/my run/a'; findmnt -T")


def test_who_may_enter_it_is_asked_where_permission_is_missing() -> None:
    assert "namei" in missing_path_advice(raised("[Errno 13] Permission denied: '/data/a'"))


@pytest.mark.parametrize(
    "error",
    [
        raised("[Errno 2] No such file or directory: '/local/a'", USER),
        raised("[Errno 2] No such file or directory: 'conf/a.yaml'"),
        raised("[Errno 28] No space left on device: '/local/a'"),
        raised("there is no '/local/a'"),
    ],
)
def test_what_the_users_line_opens_and_other_errors_are_left(error: Raised) -> None:
    assert missing_path_advice(error) == ""
