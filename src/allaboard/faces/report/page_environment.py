"""The jinja2 environment of the pages: everything is escaped, nothing loaded from elsewhere, no script."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from allaboard.faces.report.activity_letters import LETTERS
from allaboard.faces.report.template_cache import TemplateCache
from allaboard.report.plain_text import clean
from allaboard.report.servers import format_bytes
from allaboard.report.what_happened import duration_words, step_words

TEMPLATES = Path(__file__).with_name("templates")


@cache
def page_environment() -> Environment:
    """Return the environment; templates are compiled once."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
        bytecode_cache=TemplateCache(TEMPLATES, options=Path(__file__)),
    )
    environment.filters |= {
        "duration": duration_words,
        "step_time": step_words,
        "size": format_bytes,
        "share": "{:.0%}".format,
        "lines": _clean_lines,
    }
    environment.globals |= {"letters": LETTERS, "style": _style(), "style_hash": _style_hash()}
    return environment


def _visible(value: object) -> object:
    """Return what is printed: control characters of a text are made visible; markup of ours stays."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _clean_lines(lines: tuple[str, ...]) -> Markup:
    """Return lines for a <pre>: each cleaned and escaped, with its line break."""
    return Markup("\n").join(clean(line) for line in lines)


def _style() -> Markup:
    # Our own file: nothing of a run is in it.
    return Markup((TEMPLATES / "page.css").read_text())


def _style_hash() -> str:
    """Return the style's hash, the only one that the page's Content-Security-Policy allows."""
    digest = hashlib.sha256(_style().encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
