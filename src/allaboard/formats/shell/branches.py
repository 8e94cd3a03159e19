"""Assignments in branches of a shell script: variables whose value depends on the branch taken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from allaboard.facts import Value
from allaboard.formats.shell.variables import used_names
from allaboard.formats.shell.word import Word

_TESTS = frozenset(("[", "[[", "test"))
_LEADING_WORDS = frozenset(("if", "elif", "!", "while"))


class BranchAssignments:
    """What the branches before one position have assigned."""

    def __init__(self) -> None:
        self._tested_names: set[str] = set()
        self._assigned_names: set[str] = set()

    def enter_test(self, words: Sequence[Word]) -> None:
        """Note the variables that this command asks about: ``[ -z "$NAME" ]``."""
        texts = [w.literal for w in words if w.literal not in _LEADING_WORDS]
        if texts and texts[0] in _TESTS and ("-z" in texts or "-n" in texts):
            self._tested_names |= used_names(words)

    def unsure_names(
        self,
        changed: Iterable[str],
        before: Mapping[str, Value],
        after: Mapping[str, Value],
        *,
        is_certain: bool,
    ) -> set[str]:
        """Return those of the changed names whose value only a run can tell from now on.

        In a branch these are the variables that the script has asked about, which may have come from outside,
        and those that another branch has given another value.
        """
        names = set(changed)
        unsure = set()
        for name in () if is_certain else names:
            differs = name in self._assigned_names and _text(before, name) != _text(after, name)
            if name in self._tested_names or differs:
                unsure.add(name)
        self._assigned_names |= names
        return unsure


def _text(variables: Mapping[str, Value], name: str) -> str | None:
    value = variables.get(name)
    return value.text if value is not None else None
