"""What several rules ask of one view is worked out once, and never of another view."""

from __future__ import annotations

import msgspec

from allaboard.facts.memo import cached_per_view
from allaboard.facts.samples import sample_job, sample_member


def test_the_answer_is_kept_with_the_view_and_not_copied_with_it() -> None:
    asked = []

    @cached_per_view
    def ranks(view: object) -> int:
        asked.append(view)
        return len(asked)

    view = sample_job(sample_member(0), sample_member(1))
    assert (ranks(view), ranks(view)) == (1, 1)
    later = msgspec.structs.replace(view, now=view.now + 1)
    assert ranks(later) == 2
    assert view == msgspec.structs.replace(later, now=view.now)
    assert b"ranks" not in msgspec.json.encode(view)
