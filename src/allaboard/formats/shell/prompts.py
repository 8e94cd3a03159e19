"""The prompt of a shell before a command, as a copy of a terminal has it, and the fences of a web page."""

from __future__ import annotations

import re

_PROGRAM = (
    r"(?:\w+=\S{0,200} ){0,8}(?:sudo )?(?:[\w./-]{0,200}/)?"
    r"(?:python[0-9.]*|torchrun|srun|sbatch|mpirun|mpiexec|horovodrun|deepspeed|accelerate|export)\s"
)
_PROMPT = re.compile(
    r"[ \t]{0,40}(?:\([\w.-]{1,40}\) ?)?"
    r"(?:\[?[\w.-]{1,60}@[\w.-]{1,80}(?:[: ][^\s#$%\]]{0,200})?\]?[#$%]|[$%>])[ \t]+(?="
    + _PROGRAM
    + ")"
)
_FENCE = re.compile(r"[ \t]{0,8}```[\w-]{0,20}[ \t]*\Z")


def has_prompts(text: str) -> bool:
    """Return True if commands of launchers or of Python stand behind prompts: a copy of one terminal or of
    several, whose commands need not run one after the other."""
    return any(map(_PROMPT.match, text.split("\n")))


def without_prompts(text: str) -> str:
    """Return the text with blanks for prompts before commands of launchers and of Python, and for fences;
    every character stays at its place."""
    if not any(mark in text for mark in ("$ ", "# ", "> ", "% ", "```")):
        return text
    return "\n".join(
        " " * len(m[0]) + line[m.end() :]
        if (m := _PROMPT.match(line) or _FENCE.match(line))
        else line
        for line in text.split("\n")
    )
