"""An index out of range is told by the line that asked for it: one element a rank, or the first of none."""

from __future__ import annotations

import pytest

from allaboard.analysis.failures.mistakes.refused_index import refused_index
from allaboard.facts import Frame, Raised

LIBRARY = "/v/lib/python3.11/site-packages/datasets/webdataset.py"


def raised(text: str, file: str = LIBRARY, error_type: str = "IndexError") -> Raised:
    frame = Frame(file, 7, "f", text)
    return Raised(
        type=error_type, message="list index out of range", raised_at=1.0, frames=(frame,)
    )


@pytest.mark.parametrize(
    ("text", "file", "cause"),
    [
        (
            "return self.parallel_devices[self.local_rank]",
            LIBRARY,
            "more processes run on the node",
        ),
        ("gpu = gpu_ids[args.local_rank]", "/w/train.py", "more processes run on the node"),
        ("pipeline = f(tar_paths[0], tar_iterators[0])", LIBRARY, "tar_paths is empty"),
    ],
)
def test_the_line_tells_what_was_counted(text: str, file: str, cause: str) -> None:
    remedy = refused_index(raised(text, file))
    assert remedy is not None
    assert cause in remedy.cause


@pytest.mark.parametrize(
    ("text", "file", "error_type"),
    [
        ("first = rows[0]", "/w/train.py", "IndexError"),
        ("return batch[index]", LIBRARY, "IndexError"),
        ("return self.parallel_devices[self.local_rank]", LIBRARY, "KeyError"),
        ("", LIBRARY, "IndexError"),
    ],
)
def test_other_lines_tell_nothing(text: str, file: str, error_type: str) -> None:
    assert refused_index(raised(text, file, error_type)) is None
