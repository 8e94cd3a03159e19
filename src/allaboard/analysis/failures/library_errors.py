"""Exceptions that a framework raises below the user's line, with their cause: that line only called it.

The wording is that of PyTorch 1.4 to 2.13, TensorFlow 1.12 to 2.21 and JAX 0.2 to 0.10 (XLA), and of the C
library's messages that they pass on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from allaboard.analysis.failures.known_errors import known_error_advice
from allaboard.facts import Raised, Who

A_PROCESS = "a process"
"""Subject of a sentence about a process that its job does not name."""
_MACHINERY = re.compile(
    r"/torch/(?:distributed|nn/parallel|csrc/distributed)/|/horovod/|/deepspeed/(?:comm|launcher)/"
    r"|/jax/_src/(?:distributed|xla_bridge|clusters/|pjit|interpreters/pxla|dispatch|compiler)"
    r"|/tensorflow(?:_core)?/python/(?:distribute|tpu|eager/context|client/session"
    r"|training/(?:server_lib|session_manager|monitored_session|supervisor|coordinator))"
    r"|/run_config\.py|/accelerate/(?:state|commands)|/lightning\w*/(?:fabric|pytorch)/(?:strategies|plugins)/"
    r"|/pytorch_lightning/(?:strategies|plugins)/|/ray/(?:train|_private)/|/mpi4py/"
)
"""Paths of the code that meets, communicates, runs sessions or starts processes."""
_NEVER_USERS = re.compile(
    r"(?:Internal|Unknown|DataLoss|DistBackend|DistNetwork|DistStore|Dist|HorovodInternal)Error$"
    r"|Rendezvous\w*Error$"
)
"""Types of exceptions that no mistake in the user's line raises."""
_MACHINERY_TYPES = {"RuntimeError", "OSError", "TimeoutError", "ConnectionError", "ConnectionRefusedError",
    "ConnectionResetError", "BrokenPipeError", "EOFError", "gaierror", "timeout", "XlaRuntimeError",
    "JaxRuntimeError", "UnavailableError", "AbortedError", "DeadlineExceededError", "CancelledError",
    "FailedPreconditionError"}  # fmt: skip
"""Types that are a failure of this code if it raises them itself."""
_GPU_FIX = "on that host: nvidia-smi; dmesg -T | grep -i xid; then run once without that node"
_GPU_CODES = (
    r"NVLINK_UNCORRECTABLE|ECC_UNCORRECTABLE|HARDWARE_STACK_ERROR|ILLEGAL_INSTRUCTION|ILLEGAL_ADDRESS"
    r"|MISALIGNED_ADDRESS|INVALID_ADDRESS_SPACE|INVALID_PC|LAUNCH_FAILED|LAUNCH_TIMEOUT|SYSTEM_NOT_READY"
    r"|DEVICE_UNAVAILABLE|EXTERNAL_DEVICE|CONTAINED|MPS_\w+|UNKNOWN"
)
_GPU_WORDS = (
    r"an illegal instruction was encountered|unspecified launch failure|misaligned address"
    r"|hardware stack error|uncorrectable (?:ECC|NVLink) error[^\n]{0,60}|invalid program counter"
    r"|the launch timed out[^\n]{0,40}"
)
_NAME_ERRORS = (
    r"Name or service not known|Temporary failure in name resolution|No address associated with hostname"
    r"|nodename nor servname|getaddrinfo failed|No such host is known|[Nn]ame does not resolve"
)


@dataclass(frozen=True, kw_only=True)
class _Cause:
    """One cause, as its exceptions word it."""

    pattern: str
    """Regular expression of "Type: message"; its groups fill the texts."""
    says: str
    """The cause: after the member's name if it is that member's own, else a sentence."""
    fix: str
    """What to do next."""
    own: bool = True
    """True if the member that raised it, or its host, is at fault."""
    vague: bool = False
    """True if a message in the log may say more."""
    in_machinery: bool = False
    """True if it counts only where a framework's code raised it: the words are common."""

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """Return the compiled pattern."""
        return re.compile(self.pattern, re.DOTALL)


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

    def summary(self, subject: str) -> str:
        """Return the cause as a sentence about ``subject``, the members that raised it."""
        return f"{subject} {self.says}" if self.is_own else self.says


_CAUSES = (
    _Cause(
        pattern=r"\[(?P<waiter>\d+)\] is setting up NCCL communicator and retrieving ncclUniqueId from "
        r"\[(?P<rank>\d+)\].*?got error: (?P<why>[^\n]*[Tt]ime(?:d )?[Oo]ut[^\n]{0,40})",
        says="rank {waiter} waited for rank {rank}, which was still in its own code (preparing data, for "
        "example) or gone, until the store's timeout",
        fix="read the log of rank {rank}; while it waits, on its host: py-spy dump --pid PID; raise "
        "init_process_group(timeout=) (Trainer: ddp_timeout), or prepare the data before the job",
        own=False,
    ),
    _Cause(
        pattern=r"use_libuv was requested but PyTorch was buil[dt] without libuv",
        says="found no libuv in its build of PyTorch, and its store was to use it",
        fix="set USE_LIBUV=0 before the start (as builds for Windows have none), in the shell that starts it",
    ),
    _Cause(
        pattern=r"host not found: |hostname of the client socket cannot be retrieved"
        r"|network addresses? of \(?(?P<name>[\w.-]+)[^\n]{0,60}cannot be retrieved",
        says="could not resolve the name in MASTER_ADDR on its host",
        fix='on that host: getent hosts "$MASTER_ADDR"   # no output: correct the name, DNS or /etc/hosts',
    ),
    _Cause(
        pattern=_NAME_ERRORS,
        says="could not resolve the name of the host where the job meets (MASTER_ADDR, or the coordinator's "
        "address)",
        fix='on that host: getent hosts "$MASTER_ADDR"   # no output: correct the name, DNS or /etc/hosts',
        in_machinery=True,
    ),
    _Cause(
        pattern=r"Address already in use|EADDRINUSE",
        says="found the port taken on which it was to listen",
        fix='on that host: ss -ltnp "sport = :$MASTER_PORT"   # end the program that holds it, or take '
        "another port",
        in_machinery=True,
    ),
    _Cause(
        pattern=r"CUDA_ERROR_INVALID_DEVICE|invalid device ordinal|no supported devices found for platform"
        r"|CUDA_ERROR_NO_DEVICE|no CUDA-capable device is detected",
        says="asked for a GPU that it does not see",
        fix="on that host: nvidia-smi -L; echo $CUDA_VISIBLE_DEVICES   # start no more tasks on a node than "
        "it has GPUs; with JAX and one visible GPU a task: initialize(local_device_ids=[0])",
    ),
    _Cause(
        pattern=rf"(?P<what>CUDA_ERROR_(?:{_GPU_CODES})\b|(?:CUDA|HIP) (?:error|failure)[^\n]{{0,40}}"
        rf"(?:{_GPU_WORDS}))",
        says="met a fault of its GPU or of the GPU's link: {what}",
        fix=_GPU_FIX,
    ),
    _Cause(
        pattern=r"(?:NCCL [Ee]rror|NCCL operation [^\n]{0,80}failed|nccl[A-Z]\w+ failed)[^\n]{0,160}?"
        r"(?P<what>unhandled (?:system|cuda) error|internal error|invalid (?:usage|argument)|unknown error)",
        says="failed in NCCL: {what}",
        fix="run once with NCCL_DEBUG=INFO: its lines before the error name the device or the host",
        vague=True,
    ),
    _Cause(
        pattern=r"OutOfRangeError: .{0,400}?End of (?:sequence|file)"
        r"|OutOfRangeError: [^\n]*(?:Queue|Queue '[^']*') is closed and has insufficient elements",
        says="ran out of input in the middle of a step or a collective",
        fix="dataset.repeat() with steps_per_epoch=, and the same number of batches on every worker",
    ),
    _Cause(
        pattern=r"(?P<job>\w+) is not a valid task_type in the cluster_spec:\s*ClusterSpec\(\{"
        r"(?P<jobs>[^}]*)\}",
        says="got a TF_CONFIG whose cluster has no job '{job}'; it has {jobs}",
        fix="rename the job in TF_CONFIG's cluster, or the task's type, and check it: allaboard check",
    ),
    _Cause(
        pattern=r"No such job in cluster: ['\"]?(?P<job>\w+)"
        r"|Job ['\"](?P<job2>\w+)['\"] was not defined in cluster"
        r"|must have (?:exactly )?one \"(?P<job3>\w+)\" node|Task (?P<task>\d+) was not defined in job"
        r"|Unable to find job ['\"]?(?P<job4>\w+)|(?P<job5>\w+) is not in the cluster_spec",
        says="got a cluster without its own task: {message}",
        fix="compare the cluster and the task in TF_CONFIG: allaboard check",
    ),
    _Cause(
        pattern=r"^(?:RuntimeError|TimeoutError|timeout|Dist\w*Error|ConnectionError): (?:\[[^\]]*\] ?)?"
        r"(?:Socket Timeout|timed out$|connect\(\) timed out|[Ww]ait timeout|Timed? ?out waiting for)"
        r"|client socket has timed out",
        says="the store of the job did not answer in time: rank 0, or whoever serves it at "
        "MASTER_ADDR:MASTER_PORT, was not there",
        fix='read the log of rank 0; from this host: nc -vz "$MASTER_ADDR" "$MASTER_PORT"',
        own=False,
        vague=True,
        in_machinery=True,
    ),
    _Cause(
        pattern=r"Connection refused",
        says="nobody listened where the job was to meet when a member connected",
        fix='start rank 0 and read its log; from this host: nc -vz "$MASTER_ADDR" "$MASTER_PORT"',
        own=False,
        in_machinery=True,
    ),
    _Cause(
        pattern=r"^(?:RuntimeError|ConnectionResetError|BrokenPipeError|ConnectionError|Dist\w*Error|EOFError)\b"
        r"[^\n]*(?:[Cc]onnection reset by peer|Broken pipe|[Cc]onnection (?:was )?closed|failed to recv"
        r"|unexpected EOF|got 0 bytes)",
        says="the connection to the store broke: the member that served it ended, or something else answers "
        "at MASTER_ADDR:MASTER_PORT",
        fix='read the log of rank 0 first; on its host: ss -ltnp "sport = :$MASTER_PORT"   # only rank 0 of '
        "this job may listen there",
        own=False,
        in_machinery=True,
    ),
    _Cause(
        pattern=r"^(?:Xla|Jax)RuntimeError: DEADLINE_EXCEEDED",
        says="the coordinator (process 0), or a process that it waited for, did not answer in time",
        fix="read the log of process 0; see which of the num_processes has no log; compare "
        "coordinator_address in all of them",
        own=False,
        vague=True,
        in_machinery=True,
    ),
    _Cause(
        pattern=r"NaN loss during training",
        says="stopped because its loss was nan",
        fix="look at the batch of that step, and lower the learning rate; "
        "tf.debugging.enable_check_numerics() names the operation",
        vague=True,
    ),
    _Cause(
        pattern=r"^AbortedError: [^\n]*(?:Graph handle is not found|just restarted|has likely restarted)",
        says="a worker of the session was restarted while the session went on; the message does not name it",
        fix="collect the logs of all other tasks: allaboard diagnose LOG...   # the one that started twice",
        own=False,
    ),
    _Cause(
        pattern=r"^UnavailableError|^(?:Xla|Jax)RuntimeError: UNAVAILABLE",
        says="the session lost a member that the message does not name",
        fix="collect the logs of all other tasks: allaboard diagnose LOG...   # the one that ended first is "
        "the cause",
        own=False,
    ),
)


def explain_library_error(raised: Raised) -> LibraryFailure | None:
    """Return the cause of an exception that a library raised; None if the user's own line may be at fault."""
    text = f"{raised.type}: {raised.message}"
    in_machinery = is_raised_by_machinery(raised)
    for cause in _CAUSES:
        match = cause.compiled.search(text)
        if match is None or (cause.in_machinery and not in_machinery):
            continue
        groups = {k: v or "" for k, v in match.groupdict().items()}
        groups["message"] = raised.message.partition("\n")[0][:120]
        if "jobs" in groups:
            groups["jobs"] = ", ".join(re.findall(r"'\w+'(?=:)", groups["jobs"])) or "none"
        rank = groups.get("rank", "")
        about = (Who(index=int(rank), rank=int(rank)),) if rank else ()
        return LibraryFailure(
            cause.says.format(**groups), cause.fix.format(**groups), cause.own, cause.vague, about
        )
    if known_error_advice(raised) or not (
        _NEVER_USERS.match(raised.type) or (in_machinery and raised.type in _MACHINERY_TYPES)
    ):
        return None
    line = raised.message.partition("\n")[0][:160]
    return LibraryFailure(
        f"failed inside the framework: {raised.type}: {line}",
        "collect the logs of all members: allaboard diagnose LOG...   # the first one to fail "
        "says most",
        is_own=True,
        is_vague=True,
        is_generic=True,
    )


def is_raised_by_machinery(raised: Raised) -> bool:
    """Return True if the innermost frame is in the code with which a framework meets and communicates.

    Native code below has no frame, so a frame of the user's may be the innermost for its types.
    """
    if raised.type.startswith("Dist") or "Rendezvous" in raised.type:
        return True
    innermost = next((f for f in raised.frames if not f.is_standard_library), None)
    return innermost is not None and bool(_MACHINERY.search(innermost.file.replace("\\", "/")))


def called_from(raised: Raised) -> str:
    """Return the user's line that called the library, as a clause; "" if it is not known."""
    return f" (called at {raised.where})" if raised.where is not None else ""
