"""The thread in which a library runs the program's own function, where the main thread only serves calls.

Ray Train calls ``train_loop_per_worker`` in a thread of its actor, and an actor with several threads runs its
methods beside the main one; the main thread waits for the next call meanwhile. The functions are those of Ray
2.60 and, of the first Ray Train, of its sources. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

from allaboard.facts import Frame
from allaboard.formats.dumps.thread_dumps.autograd_threads import with_backward_thread
from allaboard.late_pattern import compile_late

_SERVES = compile_late(r"(?:^|/)ray/_private/(?:worker|workers/default_worker)\.py$")
"""Files of the outermost frames of an actor's main thread."""
_ENTRIES = (
    (compile_late(r"(?:^|/)ray/train/v2/[\w/]{1,80}/thread_runner\.py$"), "_run_target"),
    (compile_late(r"(?:^|/)ray/air/_internal/util\.py$"), "run"),
    (compile_late(r"(?:^|/)ray/_private/function_manager\.py$"), "actor_method_executor"),
)
"""Where such a thread enters the program: the file and the function."""


def program_frames(
    main: tuple[Frame, ...], other_threads: Iterable[tuple[Frame, ...]]
) -> tuple[Frame, ...]:
    """Return the frames of the thread that runs the program (innermost first): the main one, unless that only
    serves the library that started the program in another one.

    In a backward, the frames of autograd's own thread come first (`with_backward_thread`).
    """
    threads = list(other_threads)
    if _only_serves(main):
        candidates = [t for t in threads if any(map(_enters_program, t))]
        if candidates:
            # A thread with the user's own code tells more than one without.
            chosen = max(candidates, key=lambda t: any(f.is_user for f in t))
            return with_backward_thread(chosen, (t for t in threads if t is not chosen))
    return with_backward_thread(main, threads)


def _only_serves(main: tuple[Frame, ...]) -> bool:
    return any(_SERVES.search(f.file) for f in main) and not any(
        f.is_user or _enters_program(f) for f in main
    )


def _enters_program(frame: Frame) -> bool:
    return any(frame.function == name and file.search(frame.file) for file, name in _ENTRIES)
