"""Hooks of MkDocs: files outside docs/ that its pages link to become pages; no page is left out of the menu.

MkDocs imports this file (mkdocs.yml); it runs in the environment that has MkDocs, without allaboard.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
OUTSIDE = "project"
"""Folder of the site for what is outside docs/."""
LINK = re.compile(r"(\]\()([^)#\s:]+)((?:#[^)]*)?\))")
NAMED_FENCE = re.compile(r"^```(\w+) (\S+)$", re.M)
UNLISTED_FOLDERS = ("rules/", "man/", "project/")
"""Their pages are reached through an index or a link."""


def outside_path(source: str, link: str) -> str:
    """Return the path from the repository's root to which the link of a page leads."""
    return posixpath.normpath(posixpath.join("docs", posixpath.dirname(source), link))


def page_of(path: str) -> str:
    """Return the site's page for a file outside docs/: Markdown as it is, all else as a listing."""
    return f"{OUTSIDE}/{path}" if path.endswith(".md") else f"{OUTSIDE}/{path}.md"


def text_of(path: str) -> str:
    """Return the Markdown of such a page; links that it has itself are left as text."""
    target = ROOT / path
    if target.is_dir():
        names = "\n".join(f"- `{entry.name}`" for entry in sorted(target.iterdir()))
        return f"# {path}\n\n{names}\n"
    text = target.read_text()
    if path.endswith(".md"):
        return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)#][^)]*\)", r"\1", text)
    return f"# {path}\n\n~~~~{'python' if path.endswith('.py') else 'text'}\n{text}~~~~\n"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages outside docs/ to which its pages link."""
    added: set[str] = set()
    for file in list(files.documentation_pages()):
        for _, link, _ in LINK.findall(file.content_string):
            path = outside_path(file.src_uri, link)
            if not path.startswith("docs/") and (ROOT / path).exists():
                added.add(path)
    for path in sorted(added):
        files.append(File.generated(config, page_of(path), content=text_of(path)))
    listed = set(re.findall(r"[\w/.-]+\.md", str(config["nav"])))
    more = [
        file.src_uri
        for file in files.documentation_pages()
        if file.src_uri not in listed and not file.src_uri.startswith(UNLISTED_FOLDERS)
    ]
    if more:
        config["nav"].append({"More pages": more})
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point links that leave docs/ to their pages, and give the names of fenced files as titles."""
    source = page.file.src_uri

    def moved(match: re.Match[str]) -> str:
        path = outside_path(source, match[2])
        if source.startswith(f"{OUTSIDE}/") or path.startswith("docs/"):
            return match[0]
        if not (ROOT / path).exists():
            return match[0]
        return match[1] + posixpath.relpath(page_of(path), posixpath.dirname(source)) + match[3]

    return NAMED_FENCE.sub(r'```\1 title="\2"', LINK.sub(moved, markdown))
