"""The options that tell people of faults, and the face that they start."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from allaboard.options.usage_error import raise_usage_error

if TYPE_CHECKING:
    from allaboard.faces.notify.notify_settings import NotifySettings

MAX_URLS = 20
"""Places that are told."""


def add_notify_options(add: Callable[..., argparse.Action]) -> None:
    """Declare the options. ``add`` is the `add_argument` of a parser or of a group."""
    add(
        "--notify",
        metavar="URL",
        action="append",
        default=[],
        help="send a message when a fault is found, the job goes on, or fails: a URL of apprise "
        "(mailto://…, slack://…, json://…); may be repeated. Needs apprise: pip install 'allaboard[notify]'",
    )
    add(
        "--notify-file",
        metavar="FILE",
        type=Path,
        help="read such URLs from a file, one a line: a command line can be read by every user",
    )
    add(
        "--heartbeat-url",
        metavar="URL",
        default="",
        help="call this URL every minute while the run lasts, for a monitor that raises the alarm when the "
        "calls stop",
    )
    add(
        "--on-finding",
        metavar="CMD",
        default="",
        help="run this shell command for each finding, with the finding as JSON on its stdin",
    )


def choose_notifications(options: argparse.Namespace, is_first_task: bool) -> NotifySettings | None:
    """Return who is told; None if nobody is. ``is_first_task`` is False on further hosts of a job, which are
    silent unless they lead after the first one is lost.

    Raises:
        UsageError: apprise is not installed, or a value is malformed. No message repeats a value.
    """
    urls = (*options.notify, *_read_urls(options.notify_file))
    if not urls and not options.heartbeat_url and not options.on_finding:
        return None
    for url in urls:
        if "://" not in url or any(c.isspace() for c in url):
            raise_usage_error(
                "--notify expects a URL as apprise writes it, e.g. "
                "--notify 'mailto://USER:PASSWORD@example.org' (what was given is not repeated here)"
            )
    if len(urls) > MAX_URLS:
        raise_usage_error(f"--notify: {len(urls)} places are too many; {MAX_URLS} are allowed")
    if urls and find_spec("apprise") is None:
        raise_usage_error(
            "--notify: messages need apprise, which is not installed: pip install 'allaboard[notify]'"
        )
    heartbeat_url = options.heartbeat_url
    if heartbeat_url and not heartbeat_url.startswith(("http://", "https://")):
        raise_usage_error(
            "--heartbeat-url expects http://… or https://… (what was given is not repeated here)"
        )
    from allaboard.faces.notify.notify_settings import NotifySettings

    return NotifySettings(
        urls=urls,
        heartbeat_url=heartbeat_url,
        on_finding=options.on_finding,
        only_if_taken_over=not is_first_task,
    )


def _read_urls(file: Path | None) -> tuple[str, ...]:
    """Return the lines of the file without blank ones and comments (#)."""
    if file is None:
        return ()
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError as error:
        raise_usage_error(f"--notify-file {file}: {error.strerror}")
    urls = tuple(s for line in lines if (s := line.strip()) and not s.startswith("#"))
    if not urls:
        raise_usage_error(f"--notify-file {file} has no URL; write one a line, as apprise has them")
    return urls
