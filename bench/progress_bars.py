"""How late the redraws of a progress bar appear on a terminal, and how much output passes.

A script runs on a pseudo-terminal, as it is and under `allaboard run`. It redraws a bar with a carriage
return, each time with the time at which it did, so that every redraw that comes out at the other end of the
terminal tells how late it is; redraws that were left out in favour of a later one are counted. While the
agent itself still starts, it reads nothing: `begins` is how long after the script's first redraw. Then a rank
prints lines as fast as it can, into the terminal and into a pipe: what counts is how long it takes for that.
The terminal shows what it can of such a flood; the log file has all of it. What reads the terminal or the
pipe throws everything away.

The clock is `time.monotonic`, which all processes of a host share. The reader shares the cores with the job.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sheet

LIMIT_S = 0.2
"""No update of a bar may be later."""
SECONDS = 10.0
PRINTED_MB = 400
LINES, COLUMNS = 40, 120
"""Size of the terminal."""
PROGRAM = r"""
import os, sys, time
rank, mode = int(os.environ.get("RANK", "0")), sys.argv[1]
seconds, megabytes = float(sys.argv[2]), int(sys.argv[3])
until = time.monotonic() + seconds
if mode == "flood":
    block = (b"x" * 99 + b"\n") * 640
    began = time.monotonic()
    for _ in range(megabytes * 1_000_000 // len(block)):
        os.write(1, block)
    open("rate", "w").write(str(megabytes / (time.monotonic() - began)))
elif rank == 0:
    drawn = 0
    while time.monotonic() < until:
        sys.stderr.write("\r 37%%|####      | <bar %d %.6f>" % (drawn, time.monotonic()))
        sys.stderr.flush()
        time.sleep(1 / 20)
        drawn += 1
    sys.stderr.write("\n")
else:
    while time.monotonic() < until:
        print("rank %d: loss 0.25, a line of a log as long as most are" % rank, flush=True)
        time.sleep(0.01)
"""
BAR = re.compile(rb"<bar (\d+) (\d+\.\d+)>")
MAX_REDRAW_NBYTES = 200
"""A redraw may come in two pieces, which together are no longer."""


@contextmanager
def on_a_terminal(words: list[str], folder: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Start a program whose terminal is a new one; yields the terminal's other end."""
    reader, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    os.set_blocking(reader, False)
    environment = sheet.environment(sys.executable) | {"TERM": "xterm-256color"}
    process = subprocess.Popen(
        words, stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder, env=environment,
        start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    try:
        yield reader, process
    finally:
        process.kill()
        process.wait()
        os.close(reader)


def read_terminal(reader: int, process: subprocess.Popen[bytes]) -> Iterator[tuple[float, bytes]]:
    """Yield what comes out of the terminal, with the time at which it did, until the program has ended."""
    while True:
        ready, _, _ = select.select([reader], [], [], 0.2)
        if not ready:
            if process.poll() is not None:
                return
            continue
        try:
            data = os.read(reader, 1 << 20)
        except OSError:  # EIO: the last one on the terminal has gone
            return
        yield time.monotonic(), data


def latencies(words: list[str], folder: Path) -> dict[int, float]:
    """Return how late each redraw appeared (s), by its number. One that is drawn anew counts once."""
    late: dict[int, float] = {}
    pending = b""
    with on_a_terminal(words, folder) as (reader, process):
        for read_at, data in read_terminal(reader, process):
            pending += data
            for number, stamp in BAR.findall(pending):
                late.setdefault(int(number), read_at - float(stamp))
            pending = pending[-MAX_REDRAW_NBYTES:]
    return late


def flood(words: list[str], folder: Path, megabytes: int, is_terminal: bool) -> list[object]:
    """Return at which rate the rank could print (10^6 bytes a second), and the shares shown and logged."""
    if is_terminal:
        with on_a_terminal(words, folder) as (reader, process):
            shown = sum(data.count(b"x") for _, data in read_terminal(reader, process))
    else:
        environment = sheet.environment(sys.executable)
        with subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE) as piped:
            assert piped.stdout is not None
            pipe = piped.stdout.fileno()
            shown = sum(data.count(b"x") for data in iter(lambda: os.read(pipe, 1 << 20), b""))
    printed = megabytes * 0.99e6
    logs = sorted(folder.glob(".allaboard/*/logs/worker-0.log"))
    logged = logs[-1].stat().st_size * 0.99 if logs and "run" in words else None
    rate = float((folder / "rate").read_text())
    shares = [f"{shown / printed:.0%}", "" if logged is None else f"{logged / printed:.0%}"]
    return ["terminal" if is_terminal else "pipe", f"{rate:.0f}", *shares]


def row(name: str, late: dict[int, float]) -> list[object]:
    """Return a line of the table of redraws."""
    ordered = sorted(late.values())
    middle, near_top = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.99)]
    too_late = sum(value > LIMIT_S for value in ordered)
    numbers = [f"{1e3 * value:.1f}" for value in (middle, near_top, ordered[-1])]
    left_out = max(late) - min(late) + 1 - len(late)
    return [name, *numbers, f"{too_late} of {len(ordered)}", left_out, f"{min(late) / 20:.2f}"]


def main() -> None:
    parser = sheet.arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long each bar is drawn")
    parser.add_argument("--megabytes", type=int, default=PRINTED_MB, help="how much is printed")
    options = parser.parse_args()
    facts = sheet.circumstances(sys.executable)
    rows, rates = [], []
    with tempfile.TemporaryDirectory(prefix="allaboard-bars-") as name:
        folder = Path(name)
        script = folder / "train.py"
        script.write_text(PROGRAM)

        def words(mode: str, *run_options: object) -> list[str]:
            arguments = [str(script), mode, str(options.seconds), str(options.megabytes)]
            if run_options:
                return sheet.allaboard("run", *run_options, *arguments)
            return [sys.executable, *arguments]

        jobs = {
            "as it is": words("bar"),
            "allaboard run -n 1": words("bar", "-n", 1),
            "allaboard run -n 4, three ranks print": words("bar", "-n", 4, "--show", "all"),
        }
        for job, typed in jobs.items():
            rows.append(row(job, latencies(typed, folder)))
        for is_terminal in (True, False):
            for job, run_options in {"as it is": (), "allaboard run -n 1": ("-n", 1)}.items():
                typed = words("flood", *run_options)
                rates.append([job, *flood(typed, folder, options.megabytes, is_terminal)])
    head = (
        "job",
        "median (ms)",
        "99 of 100 (ms)",
        "latest (ms)",
        "later than 0.2 s",
        "left out",
        "begins (s)",
    )
    body = f"## Redraws of a bar\n\n{sheet.table(head, rows)}\n## A flood of lines\n\n"
    body += sheet.table(("job", "into", "10^6 bytes a second", "shown", "in the log"), rates)
    sheet.page("progress_bars", __doc__, facts, body, options.results)


if __name__ == "__main__":
    main()
