"""A job is ended by a signal first, and by SIGKILL when the user asks again."""

from __future__ import annotations

import asyncio
import signal

from allaboard.agent import shutdown
from allaboard.agent.shutdown import Shutdown


class Workers:
    all_exited = False

    def __init__(self) -> None:
        self.asked: list[tuple[str, float]] = []

    def signal_workers(self, number: int, group: bool) -> None:
        self.asked.append(("signal", number))

    def end_all(self, grace: float) -> None:
        self.asked.append(("end", grace))


def test_ctrl_c_is_passed_on_and_the_second_one_kills() -> None:
    async def press() -> None:
        workers, lines = Workers(), list[str]()
        ending = Shutdown(workers, 30.0, lines.append)
        ending.handle_interrupt(signal.SIGINT)
        assert ending.has_begun
        assert lines == [
            "Ctrl-C passed to the workers. They have 30 s to exit; press Ctrl-C again to kill them now"
        ]
        ending._last_signal_at -= shutdown.SIGNAL_DEBOUNCE_S
        ending.handle_interrupt(signal.SIGINT)
        assert workers.asked == [("end", 0.0)]
        assert lines[1:] == ["SIGINT again: killing all workers now"]
        ending.cancel()

    asyncio.run(press())


def test_the_grace_is_never_lengthened() -> None:
    ending = Shutdown(Workers(), 3.0, lambda _: None)
    ending.shorten_grace(5.0)
    assert ending.grace == 3.0
    ending.shorten_grace(1.0)
    assert ending.grace == 1.0
