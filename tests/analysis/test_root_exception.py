"""Exceptions that were caught in another process and raised again here."""

from __future__ import annotations

import traceback

import pytest

from allaboard.analysis.failures.root_exception import unwrap_root_exception
from allaboard.facts import Frame, Raised

HERE = Frame("/home/u/train.py", 12, "<module>")
LOADER = """Caught ValueError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/v/lib/python3.11/site-packages/torch/utils/data/_utils/worker.py", line 374, in _worker_loop
    data = fetcher.fetch(index)  # type: ignore[possibly-undefined]
           ^^^^^^^^^^^^^^^^^^^^
  File "/home/u/data.py", line 31, in __getitem__
    return decode(self.files[index])
  File "/v/lib/python3.11/site-packages/imageio/core.py", line 7, in decode
    raise ValueError("no image")
ValueError: no image: 'a.gif'
second line of it
"""
SPAWN = """

-- Process 2 terminated with the following error:
Traceback (most recent call last):
  File "/v/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 87, in _wrap
    fn(i, *args)
  File "/home/u/train.py", line 10, in work
    raise KeyError
KeyError
"""
PY_FUNCTION = """{{function_node __wrapped__IteratorGetNext}} OSError: cannot read shard-0007
Traceback (most recent call last):

  File "/v/lib/python3.11/site-packages/tensorfl
...
k.org/python/ops/script_ops.py", line 145, in __call__
    outputs = self._call(device, args)

  File "/home/u/train.py", line 66, in decode
    raise OSError("cannot read shard-0007")

OSError: cannot read shard-0007


\t [[{{node EagerPyFunc}}]]
\t [[RemoteCall]] [Op:IteratorGetNextAsOptional] name:
"""


@pytest.mark.parametrize(
    ("message", "kind", "said", "where"),
    [
        (
            LOADER,
            "ValueError",
            "no image: 'a.gif' (Caught ValueError in DataLoader worker process 0)",
            "data.py:31 in __getitem__",
        ),
        (
            SPAWN,
            "KeyError",
            "(Process 2 terminated with the following error)",
            "train.py:10 in work",
        ),
        (
            PY_FUNCTION.replace("Traceback (most recent call last):\n", ""),
            "OSError",
            "cannot read shard-0007 (raised again as ValueError)",
            "train.py:66 in decode",
        ),
        (
            PY_FUNCTION,
            "OSError",
            "cannot read shard-0007 (raised again as ValueError)",
            "train.py:66 in decode",
        ),
    ],
)
def test_the_place_is_the_first_ones(message: str, kind: str, said: str, where: str) -> None:
    found = unwrap_root_exception(
        Raised(type="ValueError", message=message, raised_at=5.0, where=HERE)
    )
    assert (found.type, found.message, str(found.where)) == (kind, said, where)
    assert found.raised_at == 5.0


@pytest.mark.parametrize(
    "message",
    ["", "bad batch", LOADER[:300], "Traceback (most recent call last):\n", "x\n" + SPAWN[:90]],
)
def test_what_cannot_be_read_is_left(message: str) -> None:
    raised = Raised(type="RuntimeError", message=message, raised_at=5.0, where=HERE)
    assert unwrap_root_exception(raised) == raised


def test_a_chain_ends_with_the_last() -> None:
    try:
        try:
            int("seven")
        except ValueError as error:
            raise RuntimeError("outer") from error
    except RuntimeError:
        text = "Caught\n" + traceback.format_exc()
    found = unwrap_root_exception(Raised(type="X", message=text, raised_at=0.0))
    assert found.type == "RuntimeError" and found.where is not None
    assert found.where.file == __file__
