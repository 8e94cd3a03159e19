"""Exceptions that a framework raises below the user's line, with their cause: that line only called it.

The wording is that of PyTorch 1.4 to 2.13, TensorFlow 1.12 to 2.21 and JAX 0.2 to 0.10 (XLA), and of the C
library's messages that they pass on.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from allaboard.analysis.failures.known_errors import known_error_advice
from allaboard.analysis.failures.library_error_causes import CAUSES
from allaboard.analysis.log_ends.advice_by_words import advice_by_words
from allaboard.analysis.log_ends.stated_remedy import stated_remedy
from allaboard.analysis.log_ends.telling_line import telling_part, with_telling_part
from allaboard.facts import Frame, Raised, Who
from allaboard.facts.outcome import Retry
from allaboard.late_pattern import compile_late

A_PROCESS = "a process"
"""Subject of a sentence about a process that its job does not name."""
_MACHINERY = compile_late(
    r"/torch/(?:distributed|nn/parallel|csrc/distributed)/|/horovod/|/deepspeed/(?:comm|launcher)/"
    r"|/jax/_src/(?:distributed|xla_bridge|clusters/|pjit|interpreters/pxla|dispatch|compiler)"
    r"|/tensorflow(?:_core)?/python/(?:distribute|tpu|eager/context|client/session"
    r"|training/(?:server_lib|session_manager|monitored_session|supervisor|coordinator))"
    r"|/run_config\.py|/accelerate/(?:state|commands)|/lightning\w*/(?:fabric|pytorch)/(?:strategies"
    r"|plugins)/"
    r"|/pytorch_lightning/(?:strategies|plugins)/|/ray/(?:train|_private)/|/mpi4py/"
    r"|/torch_xla/(?:distributed|core/xla_model|_internal)|/torch_npu/distributed/"
)
"""Paths of the code that meets, communicates, runs sessions or starts processes."""
_NEVER_USERS = compile_late(
    r"(?:Internal|Unknown|DataLoss|DistBackend|DistNetwork|DistStore|Dist|HorovodInternal)Error$"
    r"|Rendezvous\w*Error$|_(?:MultiThreaded)?Rendezvous$|_InactiveRpcError$"
)
"""Types of exceptions that no mistake in the user's line raises."""
_XLA_STATUS = compile_late(
    r"(?:Xla|Jax)RuntimeError: (?:INTERNAL|UNKNOWN|ABORTED|DATA_LOSS|CANCELLED|DEADLINE_EXCEEDED)\b"
)
"""Status with which XLA's runtime fails, whatever the user's line asks for."""
_NATIVE_PLACE = compile_late(
    r"(?:^|[\s\"\[])[\w./-]{1,200}\.(?:cc|cpp|cxx|cu|h|hpp)\"?:\d+ ?[:\]]|INTERNAL ASSERT FAILED at"
)
"""Place in a library's native code, with which the message of its own checks begins."""
_DEVICE_FAILURE = compile_late(
    r"(?:CUDA|HIP|XPU|NPU|MPS|cuDNN|cuBLAS|RCCL|HCCL|oneCCL|NCCL|PJRT|TPU)\b[^\n:]{0,40}\b(?:error|failure)\b"
    r"|CU(?:DA|BLAS|DNN|SPARSE|FFT)_\w*(?:ERROR|STATUS)\w*|RET_CHECK failure|\[enforce fail at "
    r"|Error allocating device buffer",
    re.IGNORECASE,
)
"""Begins what a device's runtime or a native library reports of itself."""
_OF_THE_PROGRAM = compile_late(r"device-side assert|index|shape|dimension|dtype", re.IGNORECASE)
"""Words of a device's error that the program's own tensors cause."""
_MACHINERY_TYPES = {"RuntimeError", "OSError", "TimeoutError", "ConnectionError", "ConnectionRefusedError",
    "ConnectionResetError", "BrokenPipeError", "EOFError", "gaierror", "timeout", "XlaRuntimeError",
    "JaxRuntimeError", "UnavailableError", "AbortedError", "DeadlineExceededError", "CancelledError",
    "FailedPreconditionError"}  # fmt: skip
"""Types that are a failure of this code if it raises them itself."""
MISTAKE_TYPES = frozenset(
    (
        "ArgumentError", "AssertionError", "AttributeError", "BdbQuit", "ImportError", "IndentationError",
        "IndexError", "KeyError", "ModuleNotFoundError", "NameError", "NotImplementedError",
        "RecursionError", "SyntaxError", "TabError", "TypeError", "UnboundLocalError",
        "UnicodeDecodeError", "UsageError", "ValueError", "ZeroDivisionError",
    )
)  # fmt: skip
"""Built-in exceptions of a mistake in the program or in its input. Those of files, networks and native code
(OSError, TimeoutError, RuntimeError) may pass, and so may any type that is not known."""
_CALLERS_TYPES = MISTAKE_TYPES | {"FileNotFoundError"}
"""Types by which a library mostly reports a mistake of its caller."""
_TROUBLE_TYPE = compile_late(
    r"Died|Dead|Lost|Time(?:d)?Out|Timeout|Closed|Disconnect|Abort|Crash|Unavailable|Unreachable|Mismatch"
    r"|Heartbeat|Barrier|Preempt|Evict|Connection"
)
_TROUBLE = compile_late(
    r"\btime(?:d |d-|-)?out\b|\b(?:died|dead|lost|closed by|reset by|refused|unreachable|unavailable"
    r"|disconnected|aborted|crashed|heartbeats?|rendezvous|evicted|preempted|not respond(?:ing)?|no response"
    r"|did not (?:answer|respond|join|arrive)|unexpectedly|deadline exceeded"
    r"|(?:failed|unable|could not|cannot) (?:to )?(?:connect|bind|listen)"
    r"|bind(?:ing)?(?: (?:to )?port:? \d+)? (?:failed|error)|address (?:is )?already in use)\b",
    re.IGNORECASE,
)
"""Words for what happens to peers, servers and connections, whatever line called the library."""
_REFUSES = compile_late(
    r"\b(?:must|should|expects?|expected|requires?|unsupported|not supported|only supports?|invalid|illegal"
    r"|does not match|doesn't match|(?:but|instead) (?:got|found))\b",
    re.IGNORECASE,
)
"""Words of a check of what a library was given."""
_PACKAGE = compile_late(r"/(?:site|dist)-packages/(\w+)")


class LibraryFailure(NamedTuple):
    """The cause of an exception that a library raised."""

    says: str
    """The cause: after the member's name if it is that member's own, else a sentence."""
    fix: str
    """What to do next."""
    is_own: bool
    """True if the member that raised it, or its host, is at fault."""
    is_vague: bool = False
    """True if a message in the log may say more."""
    about: tuple[Who, ...] = ()
    """The members that the message names as the cause."""
    is_generic: bool = False
    """True if the exception is only quoted, and its cause is not known."""
    together: str = ""
    """The cause after the names of several members that raised it; "" if it is the same as for one."""
    fix_together: str = ""
    """What to do next then."""
    retry: Retry = Retry.HERE
    """What to do with a job that it ended."""

    def summary(self, subject: str) -> str:
        """Return the cause as a sentence about ``subject``, the members that raised it."""
        return f"{subject} {self.says}" if self.is_own else self.says

    def for_several(self) -> LibraryFailure:
        """Return what it means if several members of one job raised it."""
        if not self.together:
            return self
        return self._replace(says=self.together, fix=self.fix_together)


def explain_library_error(raised: Raised) -> LibraryFailure | None:
    """Return the cause of an exception that a library raised; None if the user's own line may be at fault."""
    text = f"{raised.type}: {raised.message}"
    in_machinery = is_raised_by_machinery(raised)
    for cause in CAUSES:
        match = cause.compiled.search(text)
        if match is None or (cause.in_machinery and not in_machinery):
            continue
        groups = {k: v or "" for k, v in match.groupdict().items()}
        groups["message"] = raised.message.partition("\n")[0][:120]
        if "jobs" in groups:
            groups["jobs"] = ", ".join(re.findall(r"'\w+'(?=:)", groups["jobs"])) or "none"
        rank = groups.get("rank", "")
        about = tuple(Who(index=int(r), rank=int(r)) for r in re.findall(r"\d+", rank))
        if groups.get("job") and groups.get("task"):
            about = (Who(job=groups["job"], index=int(groups["task"])),)
        return LibraryFailure(
            cause.says.format(**groups),
            cause.fix.format(**groups),
            cause.own,
            cause.vague,
            about,
            together=cause.together,
            fix_together=cause.fix_together,
            retry=cause.retry,
        )
    if known_error_advice(raised) or not (
        _NEVER_USERS.match(raised.type)
        or _XLA_STATUS.match(text)
        or (in_machinery and raised.type in _MACHINERY_TYPES)
        or is_raised_by_native_check(raised)
        or is_trouble_of_library(raised)
        or is_device_failure(raised)
    ):
        return None
    line = with_telling_part(raised.message)
    library = package_of(raised) if is_trouble_of_library(raised) else ""
    return LibraryFailure(
        f"failed inside {library or 'the framework'}: {raised.type}: {line}",
        _generic_fix(raised),
        is_own=True,
        is_vague=True,
        is_generic=True,
    )


def _generic_fix(raised: Raised) -> str:
    """Return what to do about an exception of which only its words are known."""
    if stated := stated_remedy(raised.message):
        return (
            f"do what it says: {stated!r}; if that does not help, collect the logs of all members"
        )
    first_line = raised.message.partition("\n")[0][:300]
    refused = _REFUSES.search(first_line) and not _TROUBLE.search(first_line)
    if refused and raised.where is not None and raised.type in ("RuntimeError", "OSError"):
        return (
            f"look at what {raised.where} passes, and at how the library was set up before: the message "
            "says what it refuses"
        )
    collect = "collect the logs of all members: allaboard diagnose LOG...   # the first one to fail says most"
    first = advice_by_words(f"{telling_part(raised.message)} {raised.message}")
    return f"{first}; then {collect}" if first else collect


def _innermost_frame(raised: Raised) -> Frame | None:
    """Return the frame that raised the exception, the standard library's left out."""
    return next((f for f in raised.frames if not f.is_standard_library), None)


def is_raised_by_machinery(raised: Raised) -> bool:
    """Return True if the innermost frame is in the code with which a framework meets and communicates.

    Native code below has no frame, so a frame of the user's may be the innermost for its types.
    """
    if raised.type.startswith("Dist") or "Rendezvous" in raised.type:
        return True
    innermost = _innermost_frame(raised)
    return innermost is not None and bool(_MACHINERY.search(innermost.file.replace("\\", "/")))


def is_raised_by_native_check(raised: Raised) -> bool:
    """Return True if the message begins with a place in native code that a library's own line called."""
    innermost = _innermost_frame(raised)
    begins = _NATIVE_PLACE.search(raised.message.partition("\n")[0][:240])
    if begins is None or innermost is None:
        return False
    # Code of another build of a library may look like the user's; what becomes of peers is not the line's.
    return not innermost.is_user or bool(_TROUBLE.search(raised.message[:240]))


def is_device_failure(raised: Raised) -> bool:
    """Return True if the message is that of a device's runtime, or of a native library, about itself: the
    line that used it need not be wrong."""
    if raised.type in _CALLERS_TYPES:
        return False
    first_line = raised.message.partition("\n")[0][:300]
    return bool(_DEVICE_FAILURE.match(first_line)) and not _OF_THE_PROGRAM.search(first_line)


def is_trouble_of_library(raised: Raised) -> bool:
    """Return True if a library, also one that is not known here, reports a peer, a server or a connection
    that is gone or does not answer."""
    innermost = _innermost_frame(raised)
    if innermost is None or innermost.is_user or raised.type in _CALLERS_TYPES:
        return False
    first_line = raised.message.partition("\n")[0][:300]
    return bool(_TROUBLE_TYPE.search(raised.type) or _TROUBLE.search(first_line))


def package_of(raised: Raised) -> str:
    """Return the package of the innermost frame; "" if its path does not tell."""
    innermost = _innermost_frame(raised)
    match = _PACKAGE.search(innermost.file.replace("\\", "/")) if innermost is not None else None
    return match[1] if match is not None else ""


def refusing_library(raised: Raised) -> str:
    """Return the package whose own line raised the exception, below the user's; "" if it was the user's or
    the standard library's, or if the package is not known."""
    innermost = raised.frames[0] if raised.frames else None
    if innermost is None or innermost.is_user or innermost.is_standard_library:
        return ""
    return package_of(raised)


def called_from(raised: Raised) -> str:
    """Return the user's line that called the library, as a clause; "" if it is not known."""
    return f" (called at {raised.where})" if raised.where is not None else ""
