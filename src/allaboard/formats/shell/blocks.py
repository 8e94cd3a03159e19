"""The blocks that are open at a place of a shell script: what stands in them may run once, often or never."""

from __future__ import annotations

from allaboard.formats.shell.word import Word

_OPENS = frozenset("if case while until select for function {".split())  # noqa: SIM905
_CLOSES = {
    "fi": ("if",),
    "esac": ("case",),
    "}": ("{",),
    "done": ("for", "while", "until", "select"),
}
_GOES_ON = frozenset("then else elif do ! time".split())  # noqa: SIM905
_OPERANDS = frozenset("case select for function".split())  # noqa: SIM905
"""After which the rest of the words are no command."""


class Blocks:
    """The open blocks, innermost last, and the number of each."""

    def __init__(self) -> None:
        self.open: list[tuple[str, int]] = []
        self.count = 0

    def sure(self, words: list[Word]) -> bool:
        """Notes what this command opens and closes; whether it runs whatever else does: as part of no
        branch, no function and no loop but one over words."""
        for word in words:
            text = word.literal or ""
            if text in _OPENS:
                self.count += 1
                self.open.append((text, self.count))
            elif text in _CLOSES:
                self._close(_CLOSES[text])
            elif text not in _GOES_ON:
                break
            if text in _OPERANDS:
                break
        if words[0].literal == "function":
            # `function name {` in one line; else the brace follows as a command.
            self.open.pop()
            if words[-1].literal == "{":
                self.open.append(("{", self.count))
        return all(kind == "for" for kind, _ in self.open)

    @property
    def loops(self) -> tuple[int, ...]:
        """The numbers of the open loops over words."""
        return tuple(number for kind, number in self.open if kind == "for")

    def _close(self, kinds: tuple[str, ...]) -> None:
        for at in range(len(self.open) - 1, -1, -1):
            if self.open[at][0] in kinds:
                del self.open[at]
                return
