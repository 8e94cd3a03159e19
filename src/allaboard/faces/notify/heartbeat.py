"""Calls a URL every minute while the run lasts, for a service that raises the alarm when the calls stop: then
the whole host may be gone."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request

from allaboard.faces.sidecar.bounded_call import call_in_thread
from allaboard.faces.sidecar.problem_notes import ProblemNotes

INTERVAL_S = 60.0
"""Seconds between two calls."""
TIMEOUT_S = 20.0
"""Seconds for one call."""
PROBLEM = "heartbeat"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: object, **names: object) -> None:
        """Follow none: the URL is a secret, and says where to."""


def call_url(url: str, timeout_s: float = TIMEOUT_S) -> str:
    """Call the URL; return why it failed, or ""."""
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(url, timeout=timeout_s) as answer:
            answer.read(1024)
    except urllib.error.HTTPError as error:
        error.close()
        return f"the answer is {error.code}"
    except urllib.error.URLError as error:
        return _os_reason(error.reason)
    except OSError as error:
        return _os_reason(error)
    except ValueError:
        return "it is no URL"
    except Exception:  # garbage in place of HTTP
        return "the answer is no HTTP"
    return ""


def _os_reason(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return "no answer"
    if isinstance(reason, OSError) and reason.strerror:
        return reason.strerror.lower()
    return "the host cannot be reached"


async def send_heartbeats(url: str, notes: ProblemNotes, interval_s: float = INTERVAL_S) -> None:
    """Call the URL until cancelled; say once that it fails, and that it works again."""
    while True:
        try:
            why = await call_in_thread(lambda: call_url(url), TIMEOUT_S * 2)
        except TimeoutError:
            why = "no answer"
        if why:
            notes.report(PROBLEM, f"the heartbeat is not sent (--heartbeat-url): {why}")
        else:
            notes.resolve(PROBLEM, "the heartbeat is sent again")
        await asyncio.sleep(interval_s)
