"""A real browser without a screen, for the tests of pages; skipped where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect, sync_playwright

__all__ = ["expect", "needs_browser", "open_page"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
needs_browser = pytest.mark.skipif(not CHROMIUM, reason="not on this machine: no chromium")


@contextmanager
def open_page(width: int = 1280, height: int = 900, dark: bool = False) -> Iterator[Page]:
    """A page whose console must stay free of errors and warnings, and that asks nobody but this machine."""
    complaints: list[str] = []
    with sync_playwright() as playwright:
        # The sandbox of Chromium needs more than a container gives.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            permissions=["clipboard-read", "clipboard-write"],
        )
        page = context.new_page()
        page.on("console", lambda m: m.type in ("error", "warning") and complaints.append(m.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda r: "//127.0.0.1:" not in r.url and complaints.append(f"foreign: {r.url}"),
        )
        try:
            yield page
        finally:
            browser.close()
    assert complaints == []
