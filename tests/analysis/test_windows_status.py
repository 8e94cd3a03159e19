"""Exit codes of Windows, with and without a sign, and codes that are none of them."""

from __future__ import annotations

import pytest

from allaboard.analysis.failures.signal_advice import windows_status


@pytest.mark.parametrize("code", [3221225477, -1073741819])
def test_an_access_violation_is_known_in_both_forms(code: int) -> None:
    status = windows_status(code)
    assert status is not None and "access violation" in status.name


@pytest.mark.parametrize("code", [None, 0, 1, 5, 139, -11, 255])
def test_other_exit_codes_are_none(code: int | None) -> None:
    assert windows_status(code) is None
