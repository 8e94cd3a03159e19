"""Records the picture of the README: runs the PyTorch tutorial's broken job, and draws what it printed.

`python scripts/record_terminal.py docs/pictures/hang.svg`. The text is real; only the folder and the
host are renamed. The SVG uses fonts of the reader's machine, so it loads nothing.
"""

from __future__ import annotations

import io
import os
import pty
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
TUTORIAL = ROOT / "docs" / "tutorials" / "pytorch.md"
COMMAND = "allaboard run -n 3 --progress off --on-hang stop --hang-after 5 train.py --break"
COLUMNS, MAX_LINES = 100, 18
WEB_FONT = re.compile(r"@font-face \{.*?\}", re.S)


def record(folder: Path) -> str:
    """Return everything that the job prints on a terminal of COLUMNS columns."""
    master, worker = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment["VIRTUAL_ENV"] = str(Path(sys.executable).parents[1])
    job = subprocess.Popen(
        ["bash", "-c", COMMAND], cwd=folder, env=environment,
        stdin=subprocess.DEVNULL, stdout=worker, stderr=worker,
    )  # fmt: skip
    os.close(worker)
    printed = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # EIO: nobody has the other end open any more
            break
        if not chunk:
            break
        printed += chunk
    os.close(master)
    job.wait()
    return printed.decode(errors="replace")


def shown(printed: str, folder: Path) -> list[str]:
    """Return the lines to draw: up to the first finding and how the job ended."""
    text = printed.replace(str(folder), "/home/you").replace(socket.gethostname(), "vm")
    lines = [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
    ended = next(i for i, line in enumerate(lines) if "stopped because" in line)
    return [line.replace("\r", "") for line in lines[: ended + 1]][:MAX_LINES]


def draw(lines: list[str]) -> str:
    """Return the SVG of a terminal with the command and these lines."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text(f"$ {COMMAND.replace('--progress off ', '')}", style="bold"))
    for line in lines:
        console.print(Text.from_ansi(line))
    svg = console.export_svg(title="allaboard", theme=MONOKAI, unique_id="allaboard")
    return WEB_FONT.sub("", svg).replace("Fira Code, monospace", "monospace")


def main(words: list[str]) -> int:
    (script,) = re.findall(r"^```python train.py\n(.*?)^```$", TUTORIAL.read_text(), re.M | re.S)
    with tempfile.TemporaryDirectory(prefix="allaboard-record-") as name:
        folder = Path(name)
        (folder / "train.py").write_text(script)
        lines = shown(record(folder), folder)
    Path(words[0]).write_text(draw(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
