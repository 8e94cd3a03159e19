"""Exceptions of launchers: they report how a child ended, and are no failure of a rank."""

from __future__ import annotations

import re

from allaboard.analysis.log_ends.error_records import is_at_work
from allaboard.analysis.log_ends.post_traceback_output import training_over_line
from allaboard.analysis.log_messages import strip_rank_label
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD, Traceback, find_tracebacks

LAUNCHER_ERRORS = ("ChildFailedError", "ProcessExitedException", "SignalException")
"""Exceptions of torchrun and of torch.multiprocessing about the end of a child."""
SUMMARY_ROW = "\n  exitcode  : "
"""In each entry of torchrun's summary of its workers, whose end may have been cut off."""
MIN_CUT_CHARS = 6
"""Characters by which the beginning of such a name is recognised."""
MAX_LINES_AFTER_LAUNCHER = 12
"""Lines that may follow a launcher's last traceback: the rest of its message, and shells' words."""
CHILD_ERRORS = ("CalledProcessError",)
"""Exceptions of Python's subprocess about the end of a child."""
_SPARE_RESULT = "'NoneType' object has no attribute 'is_failed'"
"""What torchrun raises on a host that is not needed: it has no result of its workers."""
RAY_DEATHS = {
    "RayActorError",
    "ActorDiedError",
    "NodeDiedError",
    "OwnerDiedError",
    "WorkerCrashedError",
}
"""Exceptions of Ray's driver about an actor, or a worker, that is gone."""
_RAY_DEATH_WORDS = re.compile(r"The actor died unexpectedly before finishing this task")
"""Begins what Ray tells of that actor; the reader of Ray's messages names it."""
_LAUNCHER_FILES = re.compile(
    r"[/\\](?:torch[/\\]distributed[/\\](?:launch|run|launcher[/\\]\w+)|accelerate[/\\]commands[/\\]\w+"
    r"|deepspeed[/\\]launcher[/\\]\w+|horovod[/\\]run(?:ner)?[/\\][\w/\\]+|torch_xla[/\\]distributed[/\\]\w+)"
    r"\.py$|[/\\]bin[/\\](?:accelerate|deepspeed|horovodrun|torchrun)$"
)
_LAUNCHER_COMMANDS = re.compile(
    r"(?:^|[/\\])(?:accelerate(?:-launch)?|deepspeed|horovodrun|torchrun)(?:\.exe)?$"
)
_LAUNCHER_COMMAND = re.compile(
    r"Command '?\[?['\"]?(?:\S{0,200}/)?"
    r"(?:(?:mpirun|mpiexec(?:\.hydra)?|orterun|prterun|horovodrun|torchrun|deepspeed|srun)['\" ]"
    r"|python[\d.]*(?:'?,? '?-u)?'?,? '?-m'?,? '?(?:torch\.distributed\.(?:launch|run)|accelerate\.)\b)"
)
"""Matches what Python's subprocess says of a launcher that the script itself started."""
_CHILD_WORDS = re.compile(
    r"Horovod detected that one or more processes exited with non-zero status"
    r"|(?:mpirun|jsrun|horovodrun) failed with exit code \d"
)
"""Begins what Horovod's launchers raise of processes that ended (Horovod 0.16 to 0.28)."""
_REFERS_ABOVE = re.compile(
    r"[Ss]ee (?:the )?(?:root cause|stack ?trace|trace ?back|error|logs?|output|exception)s?\b[^.\n]{0,40}"
    r"(?:above|for (?:the |more )?(?:root cause|details|reason))"
    r"|[Cc]heck (?:the )?(?:stack ?trace|trace ?back|error|logs?)[^.\n]{0,20} above"
)
"""Matches what servers raise of an exception in another of their processes (vLLM since 0.4)."""


_SPAWNED_WORDS = re.compile(r"process \d+ terminated with (?:exit code \d|signal SIG)")
_SPAWNED_RAISED = re.compile(
    r"\s*-- Process \d+ terminated with the following (?:error|exception):"
)
"""Begins what the parent raises of a child's exception. It stands by itself only where the child's traceback,
which belongs to it, has no end."""
_SPARK_PIPE = "/pyspark.zip/pyspark/serializers.py"
"""Raises EOFError if the process at the other end of Spark's pipe is gone."""
_SPAWN = "torch/multiprocessing/spawn.py"
"""Raises these words as an Exception where a child wrote no exception (before PyTorch 1.6)."""


def is_launcher_file(file: str) -> bool:
    """Return True for a source file of a launcher, or the command that starts it."""
    return bool(_LAUNCHER_FILES.search(file) or _LAUNCHER_COMMANDS.search(file))


def refers_to_error_above(text: str) -> bool:
    """Return True for an exception that only says that the cause was written before, by another process."""
    return _REFERS_ABOVE.search(text) is not None


def is_launcher_child_error(traceback: Traceback) -> bool:
    """Return True if a launcher raised it because its command failed, or because it had none to start; or
    if a script raised it whose launcher failed."""
    if traceback.type in RAY_DEATHS and _RAY_DEATH_WORDS.match(traceback.message):
        return "ip: " in traceback.message
    if traceback.type == "RuntimeError" and _CHILD_WORDS.match(traceback.message):
        return True
    if _is_cut_name(traceback):
        return True
    if traceback.type == "EOFError" and any(_SPARK_PIPE in f.file for f in traceback.frames[-1:]):
        return True
    is_parents = traceback.type in ("Exception", "ProcessRaisedException")
    if is_parents and (not traceback.message.strip() or _SPAWNED_RAISED.match(traceback.message)):
        return any(f.file.replace("\\", "/").endswith(_SPAWN) for f in traceback.frames)
    if traceback.type == "Exception" and _SPAWNED_WORDS.match(traceback.message):
        return any(f.file.replace("\\", "/").endswith(_SPAWN) for f in traceback.frames)
    is_of_spare = traceback.type == "AttributeError" and _SPARE_RESULT in traceback.message
    if traceback.type not in CHILD_ERRORS and not is_of_spare:
        return False
    if _LAUNCHER_COMMAND.match(traceback.message):
        return True
    return any(_LAUNCHER_FILES.search(frame.file) for frame in traceback.frames)


def _is_cut_name(traceback: Traceback) -> bool:
    """Return True if the log breaks off within the name of a launcher's exception."""
    return not traceback.message.strip() and any(
        len(traceback.type) >= MIN_CUT_CHARS and name.startswith(traceback.type)
        for name in LAUNCHER_ERRORS
    )


def final_launcher_error(text: str) -> Traceback | None:
    """Return the traceback of a launcher with which a log ends; None if it ends otherwise, or goes on."""
    if TRACEBACK_HEAD not in text or training_over_line(text):
        return None
    lines = [strip_rank_label(line) for line in text.split("\n")]
    tracebacks = find_tracebacks(lines)
    if not tracebacks:
        return None
    last = tracebacks[-1]
    if _SPAWNED_RAISED.match(last.message):
        return None  # the child's own traceback stands below, without its end
    following = [line for line in lines[last.end :] if line.strip()]
    if len(following) > MAX_LINES_AFTER_LAUNCHER or is_at_work(following):
        return None
    return last if last.type in LAUNCHER_ERRORS or is_launcher_child_error(last) else None
