"""Takes stacks by py-spy, which reads the memory of a process without pausing it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from allaboard.facts import Frame
from allaboard.formats.dumps.thread_dumps.stack_frames import (
    SpiedThread,
    parse_pyspy,
    parse_spied_threads,
)
from allaboard.hosts import pidfd
from allaboard.sampling.source_lines import with_source

PYSPY_TIMEOUT_S = 5.0
"""How long py-spy gets."""
EXIT_POLL_S = 0.02
"""Time between two checks whether it has ended, on kernels without pidfd."""


async def spy_main_thread(pid: int) -> tuple[tuple[Frame, ...], str]:
    """Return the main thread's frames by py-spy, without pausing the process, and "" or why there
    are none."""
    output, trouble = await run_pyspy(pid)
    frames = parse_pyspy(output, pid)
    return frames, "" if frames else trouble or "py-spy: no Python frames"


async def spy_with_source(pid: int) -> tuple[tuple[Frame, ...], str]:
    """Return what `spy_main_thread` does, with source lines."""
    frames, trouble = await spy_main_thread(pid)
    return with_source(frames), trouble


async def spy_threads(pid: int) -> tuple[SpiedThread, ...]:
    """Return all Python threads by py-spy, without pausing the process; () if they cannot be had."""
    return parse_spied_threads((await run_pyspy(pid))[0])


async def spy_with_locals(pid: int) -> bytes:
    """Return py-spy's JSON of all threads with the variables of their functions, without pausing the process;
    empty if it cannot be had."""
    return (await run_pyspy(pid, "--locals"))[0]


async def run_pyspy(pid: int, *options: str) -> tuple[bytes, str]:
    """Return what py-spy prints about this process, and what is wrong if it prints nothing."""
    program = find_pyspy()
    if program is None:
        return b"", "py-spy is not installed"
    command = (program, "dump", "--json", "--nonblocking", *options, "--pid", str(pid))
    with _nameless_file() as output, _nameless_file() as errors:
        # Not through asyncio: of a wait that is called off it says that somebody else has reaped the child.
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors
            )
        except OSError as error:
            return b"", f"py-spy: {error.strerror}"
        try:
            await asyncio.wait_for(_wait_for_exit(process), PYSPY_TIMEOUT_S)
        except TimeoutError:
            return b"", f"py-spy gave no answer in {PYSPY_TIMEOUT_S:g} s"
        finally:
            # Also where the job has ended, and nobody wants to know any more.
            if process.poll() is None:
                process.kill()
                await _wait_for_exit(process)
                process.wait()
        # The child shares these files' offsets, which are at the end now.
        output.seek(0)
        errors.seek(0)
        error_lines = errors.read().decode("utf-8", "replace").strip().splitlines()
        return output.read(), f"py-spy: {error_lines[0]}" if error_lines else ""


def _nameless_file() -> IO[bytes]:
    """Return a file without a name, in memory if this Python can make one."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("py-spy"), "w+b")
    return tempfile.TemporaryFile()


async def _wait_for_exit(child: subprocess.Popen[bytes]) -> None:
    """Returns once this child has ended."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    try:
        process = pidfd.open_process(child.pid)
    except OSError:  # a kernel, or a sandbox, without that
        while child.poll() is None:
            await asyncio.sleep(EXIT_POLL_S)
        return
    loop.add_reader(process, over.set)
    try:
        await over.wait()
    finally:
        loop.remove_reader(process)
        os.close(process)


def find_pyspy() -> str | None:
    """Return the py-spy that is installed beside allaboard, else the one in PATH; None if there is
    none."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")
