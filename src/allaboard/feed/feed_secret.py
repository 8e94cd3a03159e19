"""The secret of a feed whose job has none."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from allaboard.launch.private_files import open_folder, replace_file

SECRET_NAME = "feed.secret"
"""File of the run folder with the feed's own secret, if the job has none."""


def make_feed_secret(path: Path) -> bytes:
    """Write a new secret into a file that only this user can read, and return it."""
    secret = secrets.token_hex(32)
    folder = open_folder(path.parent, follow=True)
    try:
        replace_file(path.name, f"{secret}\n".encode(), folder)
    finally:
        os.close(folder)
    return secret.encode()
