"""Sends messages through apprise, which knows mail, chat and pagers. No URL is ever printed: each is a
secret."""

from __future__ import annotations

import asyncio
from typing import Any

from allaboard.faces.notify.notice_text import MessageText
from allaboard.faces.sidecar.bounded_call import call_in_thread
from allaboard.faces.sidecar.problem_notes import ProblemNotes

SEND_TIMEOUT_S = 30.0
"""Seconds for one attempt to send a message to one place."""
RETRY_DELAYS_S = (5.0, 30.0)
"""Seconds before each further attempt."""
LAST_RETRY_DELAYS_S = (3.0,)
"""The same at the end of the run, which waits for the message."""


def target_name(number: int, url: str) -> str:
    """Return what a person may read of a place: its number and its kind."""
    return f"notification {number} ({url.partition('://')[0]}://…)"


class MessageSender:
    """One place to which messages go."""

    def __init__(self, number: int, url: str, notes: ProblemNotes, send_timeout_s: float) -> None:
        self._name = target_name(number, url)
        self._url, self._notes, self._timeout_s = url, notes, send_timeout_s

    async def check(self) -> bool:
        """Return True if apprise knows such a URL; say so if it does not."""
        try:
            is_known = bool(await call_in_thread(self._instantiate, SEND_TIMEOUT_S))
        except Exception:
            return True  # the first message that is sent will say what is wrong
        if not is_known:
            self._notes.write(
                f"{self._name} cannot be sent: apprise does not understand the URL; how each kind is "
                "written: https://github.com/caronc/apprise/wiki"
            )
        return is_known

    async def send(self, message: MessageText, retry_delays_s: tuple[float, ...]) -> bool:
        """Send a message, again if that fails; say so if it fails for good."""
        why = ""
        for delay_s in (0.0, *retry_delays_s):
            await asyncio.sleep(delay_s)
            try:
                if await call_in_thread(lambda: self._notify(message), self._timeout_s):
                    self._notes.resolve(self._name, f"{self._name} is sent again")
                    return True
                why = "it was refused, or nobody answers"
            except TimeoutError:
                why = f"no answer within {self._timeout_s:g} s"
            except Exception as error:
                why = type(error).__name__  # its text may quote the URL
        self._notes.report(self._name, f"{self._name} was not sent: {why}; the job goes on")
        return False

    def _instantiate(self) -> Any:
        import apprise

        return apprise.Apprise.instantiate(self._url, suppress_exceptions=True)

    def _notify(self, message: MessageText) -> bool:
        import apprise

        service = apprise.Apprise()
        service.add(self._instantiate())
        return bool(
            service.notify(
                title=message.title, body=message.body, body_format=apprise.NotifyFormat.TEXT
            )
        )
