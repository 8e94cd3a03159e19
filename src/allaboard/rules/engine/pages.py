"""Renders the pages of the rules, and the folder docs/rules that is made of them.

``python -m allaboard.rules.engine.pages DIR`` writes the folder; with ``--check`` it exits 1 and names
the pages that are stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

from allaboard.rules.engine.catalogue import RuleEntry, load_catalogue


def render_page(entry: RuleEntry) -> str:
    """Return the page of a rule as Markdown: its title, its text, and what it reports on its examples."""
    rule = entry.rule
    examples = "\n".join(f"- {name}: “{summary}”" for name, (_, summary) in rule.fires_on.items())
    near_misses = "\n".join(f"- {name}" for name in rule.silent_on)
    staged = (
        f"Staged on a real framework by: {', '.join(f'`{d}`' for d in rule.drill)}."
        if rule.drill
        else f"Not staged: {entry.unstaged}."
    )
    return (
        f"# {entry.code} {entry.name}\n\n"
        f"*Stage {entry.stage}, since {rule.since}.*\n\n{entry.page}\n\n"
        f"## What it reports\n\n{examples}\n\n## What it does not report\n\n{near_misses}\n\n{staged}\n"
    )


def find_page(code: str) -> str:
    """Return the page of a rule by its code, or a sentence if there is no such rule."""
    entry = load_catalogue().find_rule(code)
    return render_page(entry) if entry is not None else f"There is no page of {code}."


def render_pages() -> dict[str, str]:
    """Return the text of every page and of the index by file name."""
    entries = load_catalogue().entries
    texts = {f"{e.code}.md": render_page(e) for e in entries}
    rows = "\n".join(f"| [{e.code}]({e.code}.md) | {e.name} | {e.title} |" for e in entries)
    texts["README.md"] = (
        "# Everything that allaboard can report\n\n"
        "Made from `src/allaboard/rules`; `allaboard explain CODE` prints the same.\n\n"
        f"| code | name | reports |\n|---|---|---|\n{rows}\n"
    )
    return texts


def main(arguments: list[str]) -> int:
    """Write or check the folder of pages; return the exit code, 0 if all rules load and no page is stale."""
    check = "--check" in arguments
    broken = load_catalogue().broken
    if broken:
        # Without these rules their pages would be deleted.
        reasons = "; ".join(f"{b.stem}: {b.why}" for b in broken)
        print(f"rules that cannot be loaded have no page: {reasons}", file=sys.stderr)
        return 1
    folder = Path(next((a for a in arguments if not a.startswith("-")), "docs/rules"))
    texts = render_pages()
    written = {p.name: p.read_text() for p in folder.glob("*.md")}
    stale = sorted(n for n in texts.keys() | written.keys() if texts.get(n) != written.get(n))
    if check:
        if stale:
            print(f"stale in {folder}: {', '.join(stale)}; run: make docs", file=sys.stderr)
        return 1 if stale else 0
    folder.mkdir(parents=True, exist_ok=True)
    for name in written.keys() - texts.keys():
        (folder / name).unlink()
    for name, text in texts.items():
        (folder / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
