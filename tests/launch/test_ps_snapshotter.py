"""How variables are read from a server."""

from __future__ import annotations

import threading
import time

from allaboard.launch.serving.ps_snapshotter import await_answers, read_batches, snapshot_hindrance


def names(sizes: list[int], most: int) -> list[list[str]]:
    found = read_batches(sizes, [1] * len(sizes), most)
    return [[str(p.variable) for p in batch] for batch in found]


def test_no_step_asks_for_more_than_the_most() -> None:
    assert names([4, 4, 4, 4], 8) == [["0", "1"], ["2", "3"]]
    assert names([1, 1, 1], 8) == [["0", "1", "2"]]
    assert names([], 8) == []


def test_one_that_is_larger_comes_in_pieces() -> None:
    assert names([2, 20, 2], 8) == [["0"], ["1"], ["1"], ["1", "2"]]
    pieces = [piece for batch in read_batches([2, 20], [1, 4], 8) for piece in batch]
    assert pieces == [(0, 0, -1), (1, 0, 2), (1, 2, 2), (1, 4, 1)]


def test_one_element_that_is_larger_comes_alone() -> None:
    assert [len(batch) for batch in read_batches([32], [16], 8)] == [1, 1]


class Slow:
    """A server that gives a part whenever it is let."""

    def __init__(self) -> None:
        self.answered = time.monotonic()
        self.done = threading.Event()

    def reads(self) -> threading.Thread:
        thread = threading.Thread(target=self.done.wait, args=(10.0,), daemon=True)
        thread.start()
        return thread


def test_who_answers_in_parts_is_awaited_as_long_as_parts_come() -> None:
    slow = Slow()
    thread = slow.reads()
    slow.answered += 5.0  # a part has come since
    threading.Timer(0.05, slow.done.set).start()
    await_answers(thread, slow, patience=-4.0)
    assert not thread.is_alive()


def test_who_gives_nothing_more_is_given_up() -> None:
    slow = Slow()
    thread = slow.reads()
    await_answers(thread, slow, patience=-1.0)
    assert thread.is_alive()
    slow.done.set()
    thread.join()


def listed(address: str, *shape: int) -> dict[str, object]:
    large = {"name": "words", "shape": list(shape), "width": 4}
    return {"unread": [], "cluster": {"ps:0": address}, "variables": [large]}


def test_what_no_message_holds_cannot_be_given_to_another_host() -> None:
    assert snapshot_hindrance(listed("h2:1", 1 << 20, 512)).startswith("words: more than 2 GiB")
    assert snapshot_hindrance(listed("h2:1", 1 << 20, 256)) == ""
    assert snapshot_hindrance(listed("127.0.0.1:1", 1 << 20, 512)) == ""
    assert "not only variables" in snapshot_hindrance({"unread": ["table"]})
