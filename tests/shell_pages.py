"""Pages of the documentation as a reader follows them: save the files, type the commands, compare."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)
"""A fenced block: language, name of the file if it is to be saved, text."""
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Typed:
    """A command of a page."""

    command: str
    """What the reader types."""
    shown: str
    """What the page says is printed; a line of three dots stands for any lines."""


def files_of(page: Path) -> dict[str, str]:
    """Return the files that the page asks to save, by name."""
    return {name: text for _, name, text in BLOCK.findall(page.read_text()) if name}


def commands_of(page: Path) -> list[Typed]:
    """Return the commands of the page's console blocks, in order."""
    typed = []
    for language, _, text in BLOCK.findall(page.read_text()):
        if language == "console":
            for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
                command, _, shown = part.replace("\\\n", " ").partition("\n")
                typed.append(Typed(re.sub(r"\s+", " ", command).strip(), shown))
    return typed


def type_command(typed: Typed, folder: Path, timeout_s: float = 120) -> str:
    """Run the command in the folder and return all it prints, as in a pipe."""
    left_out = ("COLUMNS", "RANK", "WORLD_SIZE", "TF_CONFIG", "FORCE_COLOR")
    environment = {k: v for k, v in os.environ.items() if k not in left_out} | {
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "VIRTUAL_ENV": str(BIN.parent),
    }
    done = subprocess.run(
        ["bash", "-c", typed.command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    return done.stdout.replace(str(folder), "/home/you").replace(socket.gethostname(), "vm")


def unlike(shown: str, printed: str) -> list[str]:
    """Return the parts of what a page shows that were not printed in this order; numbers may differ."""
    rest, missing = _plain(printed), []
    for part in re.split(r"^\.\.\.$", shown, flags=re.M):
        wanted = _plain(part)
        if wanted and wanted not in rest:
            missing.append(wanted)
        elif wanted:
            rest = rest.partition(wanted)[2]
    return missing


def _plain(text: str) -> str:
    """Return the text on one line, without the numbers and units that differ from run to run."""
    text = re.sub(r"\.allaboard/\S+", ".allaboard/JOB", text)
    text = re.sub(r"(?<![\w.])\d[\d.:,]*(?<!:)", "N", " ".join(text.split()))
    text = re.sub(r"\bN (ms|s|min)\b", "N s", text)
    # faulthandler where it answers within its time, which it may not on a busy machine.
    text = re.sub(r"\[(py-spy|faulthandler)\]", "[SAMPLER]", text)
    text = re.sub(r"round trip to \w+ N", "round trip to TASK", text)
    return re.sub(r"\bN (bytes|kB|MB|GB)\b", "N B", text)
