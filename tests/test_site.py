"""The documentation as a site: all links lead somewhere, and it needs nothing from other hosts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md"))
LINK = re.compile(r"\]\(([^)#\s:]*)#([^)\s]+)\)")
LOADED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]+src=["']?(https?:)?//|<link[^>]+rel=["']?(?:stylesheet|icon|preload)["']?"""
    r"""[^>]+href=["']?(https?:)?//|url\(["']?(https?:)?//|@import ["'](https?:)?//"""
)
"""What a browser loads from another host by itself; a link that is clicked is not among it."""


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose tags name Python functions."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's titles, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    made: list[str] = []
    for title in re.findall(r"^#{1,6} (.+)$", text, re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        made.append(re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-"))
    return frozenset(made)


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *PAGES], ids=lambda p: str(p.relative_to(ROOT))
)
def test_links_to_sections_lead_to_titles(page: Path) -> None:
    wrong = []
    for path, anchor in LINK.findall(page.read_text()):
        target = (page.parent / path).resolve() if path else page
        if target.suffix == ".md" and anchor not in anchors(target):
            wrong.append(f"{path}#{anchor}")
    assert wrong == []


def test_the_menu_names_pages_that_exist() -> None:
    menu = (ROOT / "mkdocs.yml").read_text()
    named = re.findall(r": ([\w/.-]+\.md)$", menu, re.M)
    assert len(named) > 30 and [n for n in named if not (DOCS / n).exists()] == []
    read = yaml.load(menu, _Loader)
    assert read["theme"]["font"] is False, "fonts would come from another host"


@pytest.mark.parametrize("picture", sorted(DOCS.rglob("*.svg")), ids=lambda p: p.name)
def test_pictures_load_nothing(picture: Path) -> None:
    assert LOADED.search(picture.read_text()) is None
    assert "@font-face" not in picture.read_text()


def test_it_builds_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    mkdocs = shutil.which("mkdocs", path=f"{ROOT}/.venv-site/bin{os.pathsep}{os.environ['PATH']}")
    if mkdocs is None:
        pytest.skip("no MkDocs here; make site installs it")
    done = subprocess.run(
        [mkdocs, "build", "--strict", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    built = list((tmp_path / "site").rglob("*.html"))
    assert len(built) > 200
    loading = [
        f"{file.name}: {found[0]}"
        for file in [*built, *(tmp_path / "site").rglob("*.css")]
        if (found := LOADED.search(file.read_text()))
    ]
    assert loading == []
    for name in ("tutorials/pytorch.html", "rules/HANG005.html", "project/CONTRIBUTING.html"):
        assert (tmp_path / "site" / name).exists()
