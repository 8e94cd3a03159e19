"""Tracebacks as Python's traceback module prints them; chains and exception groups count as one. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from allaboard.facts import Frame

TRACEBACK_HEAD = "Traceback (most recent call last):"
MAX_TRACEBACK_LINES = 400
"""Lines of one traceback."""
_QUOTED_RANK = re.compile(r" \(RANK (\d{1,7})\)\s*$")
"""Ends the head of a traceback of another rank, as torch.distributed.checkpoint quotes it."""
_FRAME = re.compile(r'(?:> |\s+)File "([^"]{1,1000})", line (\d+), in (.{1,200})$')
_ERROR = re.compile(r"([A-Za-z_][\w.]{0,200})(?:: ?(.*))?$")
_RAY_ERROR = re.compile(r"[\w.]{0,80}RayTaskError\(\w+\): ")
"""Matches Ray's message after which the frames of the other process follow."""
_RAY_PROCESS = re.compile(r"\(pid=(\d{1,9}), ip=([\w.:]{1,60})")
"""Matches that process in it."""
_PIPE_ERRORS = ("BrokenPipeError", "ConnectionResetError", "EOFError")
_SPAWN = "torch/multiprocessing/spawn.py"
_CHAINED = re.compile(
    r"The above exception was the direct cause of the following exception:"
    r"|During handling of the above exception, another exception occurred:"
    r"|-- Process \d+ terminated with the following (?:error|exception):"  # torch.multiprocessing
)
MAX_SOURCE_CHARS = 400
"""Characters of a source line that are kept."""
MAX_MESSAGE_LINES = 12
"""Lines that are read of a message beyond its first."""
_MESSAGE_LINE = re.compile(
    # Such as load_state_dict's; not an exception group's, nor a progress bar.
    r"(?![ \t]*\d{1,3}%\|)[ \t]+[^\s|+]"
    # DDP's, of parameters without a gradient.
    # TensorFlow's, of a task that its cluster does not have.
    r"|ClusterSpec\("
    r"|If you already have done the above, then|Parameter(?: indice)?s which did not receive grad"
)
_REMOTE_HEAD = re.compile(r"\bFrom /job:\w+/(?:replica:\d+/)?task:\d+:$")
"""Matches the end of a line after which TensorFlow quotes the error of another task."""
_GRAPH_ERROR = "Graph execution error:"
_TRACE_ERROR = "in user code:"
"""Begins TensorFlow's message about an error while a tf.function was traced, with its places in the code."""
_GRAPH_PLACE = re.compile(r"\s+File \"|Detected at node |<stack traces unavailable>")
_GUTTER = re.compile(r"\s+(?:\| ?|\+[-+]{2,}(?: \d+ -+)?|\+ )")
"""Matches what an exception group puts before the lines of its parts."""


class Traceback(NamedTuple):
    """One traceback, with those that it is chained to."""

    begin: int
    """Index of its first line, or of the first line of what it is chained to."""
    end: int
    """Index after its last line."""
    type: str
    """Type of the last exception, which is the one that reached the top."""
    message: str
    """Message of that exception."""
    frames: tuple[Frame, ...]
    """Frames of that exception, outermost first."""
    root_cause: str = ""
    """The exception that began the chain, in words; "" without a chain."""
    rank: int = -1
    """Rank of which its head says that it raised it, -1 if it says none."""
    pid: int = 0
    """Process that raised it, if Ray quotes it in another one; 0 if not."""
    host: str = ""
    """Address of that process."""

    @property
    def user_frame(self) -> Frame | None:
        """The innermost line of the user's own code."""
        user_frames = [f for f in reversed(self.frames) if f.is_user]
        # Code in a string is mostly generated: the user's file is where it was called from.
        in_files = (f for f in user_frames if f.file != "<string>")
        return next(in_files, user_frames[0] if user_frames else None)

    @property
    def summary(self) -> str:
        """Type, message and place in one line."""
        location = f" at {self.user_frame}" if self.user_frame is not None else ""
        return f"{self.type}: {self.message[:200]}{location}"


def find_tracebacks(lines: Sequence[str]) -> list[Traceback]:
    """Return all tracebacks of these lines, in order."""
    all_tracebacks: list[Traceback] = []
    group_end = -1
    for begin, line in enumerate(lines):
        if TRACEBACK_HEAD not in line or (
            all_tracebacks and begin < all_tracebacks[-1].end and begin >= group_end
        ):
            continue
        if "+ Exception Group " + TRACEBACK_HEAD in line:
            group_end = _group_end(lines, begin)
        traceback = _read_traceback(lines, begin, group_end if begin < group_end else 0)
        if traceback is None:
            continue
        previous = all_tracebacks[-1] if all_tracebacks else None
        if previous is not None and (
            previous.begin < group_end > begin or _is_chained(lines, previous.end, begin)
        ):
            root_cause = previous.root_cause or previous.summary
            chained = traceback._replace(begin=previous.begin, root_cause=root_cause)
            is_report = _failed_to_report(traceback)
            traceback = previous._replace(end=traceback.end) if is_report else chained
            all_tracebacks.pop()
        all_tracebacks.append(traceback)
    return all_tracebacks


def _failed_to_report(traceback: Traceback) -> bool:
    """Return True if a child could not tell its parent, which had gone, what it had raised before."""
    return traceback.type in _PIPE_ERRORS and all(
        f.is_standard_library or f.file.replace("\\", "/").endswith(_SPAWN)
        for f in traceback.frames
    )


def _read_traceback(lines: Sequence[str], begin: int, group_end: int) -> Traceback | None:
    frames: list[Frame] = []
    quoted_rank, ray_process = _QUOTED_RANK.search(lines[begin]), None
    for number in range(begin + 1, min(len(lines), begin + MAX_TRACEBACK_LINES)):
        line = _GUTTER.sub("", lines[number], count=1) if number < group_end else lines[number]
        if frame := _FRAME.match(line):
            frames.append(Frame(frame[1], int(frame[2]), frame[3], _source_line(lines, number + 1)))
        elif frames and _RAY_ERROR.match(line):
            ray_process = _RAY_PROCESS.search(line) or ray_process
        elif line[:1] not in ("", " ", "\t", ">"):
            error = _ERROR.match(line)
            if error is None or not frames:
                return None
            message = error[2] or ""
            if error[2] == "":  # TensorFlow's messages begin on the line after their type
                message = " ".join(lines[number + 1 : number + 3]).strip()
            if not message and frames[-1].text.startswith("assert "):
                message = frames[-1].text  # all that an assertion without a message says
            message_lines = _message_lines(lines, number) if error[2] else []
            message = "\n".join([message, *message_lines])
            error_type = error[1].rpartition(".")[2]
            end = max(number + 1 + len(message_lines), group_end)
            end = _end_of_brackets(lines, number, end)
            if message.startswith(_TRACE_ERROR):
                message, end = _read_trace_error(lines, number + 1, frames)
                message = message.removeprefix(f"{error_type}: ")
            if message.startswith(_GRAPH_ERROR):
                message, end = _read_graph_error(lines, number + 1, message)
            return Traceback(
                *(begin, end, error_type, message[:1000], tuple(frames)),
                rank=int(quoted_rank[1]) if quoted_rank is not None else -1,
                pid=int(ray_process[1]) if ray_process is not None else 0,
                host=ray_process[2] if ray_process is not None else "",
            )
    return None


def _source_line(lines: Sequence[str], number: int) -> str:
    """Return the source line that a frame shows there; "" if it shows none."""
    line = lines[number][:MAX_SOURCE_CHARS] if number < len(lines) else ""
    is_source = line.startswith("    ") and _FRAME.match(line) is None
    return line.strip() if is_source else ""


def _message_lines(lines: Sequence[str], number: int) -> list[str]:
    """Return the rest of the message that begins in this line."""
    message_lines = []
    for previous, line in pairwise(lines[number : number + 1 + MAX_MESSAGE_LINES]):
        if _MESSAGE_LINE.match(line) is None and _REMOTE_HEAD.search(previous) is None:
            break
        message_lines.append(line.rstrip())
    return message_lines


def _end_of_brackets(lines: Sequence[str], begin: int, end: int) -> int:
    """Return the line after a message that leaves brackets open, as a printed array does; else ``end``."""
    depth = 0
    for number, line in enumerate(lines[begin : begin + MAX_TRACEBACK_LINES], begin):
        depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        if depth <= 0 or TRACEBACK_HEAD in line:
            return max(end, number + 1) if depth <= 0 else end
    return end


def _read_trace_error(lines: Sequence[str], begin: int, frames: list[Frame]) -> tuple[str, int]:
    """Return the error and the line where it ends; its places are added to ``frames``."""
    message, number = _TRACE_ERROR, begin
    for number, line in enumerate(lines[begin : begin + MAX_TRACEBACK_LINES], begin):
        if line.strip() and not line.startswith("    "):
            return message, number
        if frame_match := _FRAME.match(line):
            frames.append(Frame(frame_match[1], int(frame_match[2]), frame_match[3].rstrip(" *")))
        elif re.match(r"    \S", line):
            message = line.strip()
    return message, min(len(lines), number + 1)


def _read_graph_error(lines: Sequence[str], begin: int, message: str) -> tuple[str, int]:
    """Return TensorFlow's message and the line where it ends.

    What failed stands after the places of the operation in the code.
    """
    failure: list[str] = []
    for number, line in enumerate(lines[begin : begin + MAX_TRACEBACK_LINES], begin):
        if TRACEBACK_HEAD in line:
            break
        if _GRAPH_PLACE.match(line):
            failure.clear()
        elif line.strip():
            failure.append(line.strip())
        if "[Op:" in line:
            return "\n".join([message, *failure]), number + 1
    return message, begin


def _group_end(lines: Sequence[str], begin: int) -> int:
    end = begin + 1
    while end < len(lines) and _GUTTER.match(lines[end]):
        end += 1
    return end


def _is_chained(lines: Sequence[str], end: int, begin: int) -> bool:
    # PyTorch's message of an exception of another process or thread holds that one's traceback.
    if "Original " + TRACEBACK_HEAD in lines[begin]:
        return True
    return any(map(_CHAINED.search, lines[max(end, begin - 4) : begin]))
