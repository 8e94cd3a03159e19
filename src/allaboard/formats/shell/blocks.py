"""Blocks that are open at one position of a shell script: their commands may run once, often or
never."""

from __future__ import annotations

from allaboard.formats.shell.word import Word

_OPENING_WORDS = frozenset("if case while until select for function {".split())  # noqa: SIM905
_CLOSING_WORDS = {
    "fi": ("if",),
    "esac": ("case",),
    "}": ("{",),
    "done": ("for", "while", "until", "select"),
}
_CONTINUING_WORDS = frozenset("then else elif do ! time".split())  # noqa: SIM905
_WORDS_WITH_OPERANDS = frozenset("case select for function".split())  # noqa: SIM905
"""Words that are followed by operands, not by a command."""


class OpenBlocks:
    """The open blocks, innermost last, each with its number."""

    def __init__(self) -> None:
        self.open: list[tuple[str, int]] = []
        self.count = 0

    def enter_command(self, words: list[Word]) -> bool:
        """Note the blocks that this command opens and closes. Return True if it runs whatever other
        commands do: it stands in no branch, in no function, and in no loop except one over
        words."""
        for word in words:
            text = word.literal or ""
            if text in _OPENING_WORDS:
                self.count += 1
                self.open.append((text, self.count))
            elif text in _CLOSING_WORDS:
                self._close_block(_CLOSING_WORDS[text])
            elif text not in _CONTINUING_WORDS:
                break
            if text in _WORDS_WITH_OPERANDS:
                break
        if words[0].literal == "function":
            # `function name {` in one line; else the brace follows as a command.
            self.open.pop()
            if words[-1].literal == "{":
                self.open.append(("{", self.count))
        return all(kind == "for" for kind, _ in self.open)

    @property
    def loop_numbers(self) -> tuple[int, ...]:
        """Numbers of the open loops over words, outermost first."""
        return tuple(number for kind, number in self.open if kind == "for")

    def _close_block(self, kinds: tuple[str, ...]) -> None:
        for index in range(len(self.open) - 1, -1, -1):
            if self.open[index][0] in kinds:
                del self.open[index]
                return
