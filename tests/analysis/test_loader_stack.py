"""Where a process that loads data is in the user's own code."""

from __future__ import annotations

from allaboard.analysis.stacks.loader_stack import own_frame_of_loader
from allaboard.facts import Frame

SITE, STD = "/v/lib/python3.11/site-packages/", "/usr/lib/python3.11/"
ENTRY = (
    Frame(SITE + "torch/utils/data/_utils/worker.py", 300, "_worker_loop"),
    Frame(STD + "multiprocessing/process.py", 108, "run"),
    Frame(STD + "multiprocessing/process.py", 314, "_bootstrap"),
)
PARENT = Frame("/home/u/train.py", 40, "<module>")
READ = Frame("/home/u/data.py", 9, "__getitem__")
FETCH = Frame(SITE + "torch/utils/data/_utils/fetch.py", 54, "fetch")


def test_a_dataset_of_the_users_is_the_place() -> None:
    assert own_frame_of_loader((READ, FETCH, *ENTRY, PARENT)) == READ
    in_library = Frame(SITE + "PIL/Image.py", 900, "load")
    assert own_frame_of_loader((in_library, READ, FETCH, *ENTRY, PARENT)) == READ


def test_a_loader_that_waits_for_work_is_nowhere() -> None:
    get = Frame(STD + "multiprocessing/queues.py", 103, "get")
    assert own_frame_of_loader((get, *ENTRY, PARENT)) is None


def test_another_program_is_no_loader() -> None:
    assert own_frame_of_loader((PARENT,)) is None
    assert own_frame_of_loader(()) is None
