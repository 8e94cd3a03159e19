"""What XLA writes, in JAX and TensorFlow, of GPUs that a process cannot use and of inputs that do not fit."""

from __future__ import annotations

import msgspec

from allaboard.analysis.log_ends.post_traceback_output import training_over_line, trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages, strip_rank_label
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Severity, Testimony
from allaboard.formats.dumps.cut_tracebacks import begun_traceback, cut_traceback
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

_SOURCE = "its wording from the source of XLA, in JAX 0.2 to 0.10 and TensorFlow 2.4 to 2.21"
MESSAGES = (
    KnownMessage(
        key="unable to create StreamExecutor for CUDA:",
        pattern=r"unable to create StreamExecutor for CUDA:(?P<number>\d{1,3}): [^\n]{0,400}?"
        r"CUDA_ERROR_INVALID_DEVICE",
        rule="LOG013",
        says="a process asked for GPU {number} of its host, which it does not see: there are more processes "
        "than GPUs, or each sees only its own",
        fix="nvidia-smi -L; echo $CUDA_VISIBLE_DEVICES   # in that process: start no more tasks on a node "
        "than it has GPUs; where each task sees only its own GPU: "
        "jax.distributed.initialize(local_device_ids=[0])",
        severity=Severity.WARNING,
        explains=("LOG012",),
        sample="W xla/service/platform_util.cc:206] unable to create StreamExecutor for CUDA:6: CUDA error: "
        "Failed call to cuDeviceGet: CUDA_ERROR_INVALID_DEVICE: invalid device ordinal",
        source=_SOURCE,
    ),
    KnownMessage(
        key="unable to create StreamExecutor for CUDA:",
        pattern=r"unable to create StreamExecutor for CUDA:(?P<number>\d{1,3}): [^\n]{0,400}?"
        r"CUDA_ERROR_(?P<why>DEVICE_UNAVAILABLE|OUT_OF_MEMORY)",
        rule="LOG013",
        says="a process could not use GPU {number} ({why}): another process holds it, or its memory",
        fix="nvidia-smi   # on that host: which processes are on the GPU, and is its compute mode Exclusive? "
        "End them, or take other GPUs (CUDA_VISIBLE_DEVICES; Slurm: --gpus-per-task=1); to share one: "
        "nvidia-smi -c DEFAULT and XLA_PYTHON_CLIENT_PREALLOCATE=false",
        severity=Severity.WARNING,
        explains=("LOG012",),
        sample="W xla/service/platform_util.cc:199] unable to create StreamExecutor for CUDA:0: failed "
        "initializing StreamExecutor for CUDA device ordinal 0: INTERNAL: failed call to "
        "cuDevicePrimaryCtxRetain: CUDA_ERROR_DEVICE_UNAVAILABLE: CUDA-capable device(s) is/are busy",
        source=_SOURCE,
    ),
    KnownMessage(
        key="Executable expected shape ",
        pattern=r"Executable expected shape (?P<want>\w{1,12}\[[\d,]{0,80}\])\S{0,40} for argument "
        r"(?P<number>\d{1,6}) but ?got incompatible shape (?P<got>\w{1,12}\[[\d,]{0,80}\])",
        rule="LOG013",
        says="argument {number} of the compiled step is {got}, and it was compiled for {want}: a process "
        "passed the whole batch in place of its part, or data that is spread another way",
        fix="compare x.shape and x.sharding of that argument in the first and in this step, in "
        "every process: "
        "jax.make_array_from_process_local_data(sharding, local_batch) makes a global array of the parts",
        explains=("LOG012",),
        sample="E xla/pjrt/pjrt_stream_executor_client.cc:2410] Execution of replica 0 failed: "
        "INVALID_ARGUMENT: Executable expected shape f32[8,32]{1,0} for argument 0 but got incompatible "
        "shape f32[8,256]{1,0}",
        source=_SOURCE,
    ),
)
MIN_STEPS_AFTER = 2
"""Lines about loss or steps after a message that show that the training went on."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    failed = TRACEBACK_HEAD in text
    if training_over_line(text) or (failed and not _breaks_off(text)):
        return None  # an exception tells the same
    heard = tuple(
        h
        for message in MESSAGES
        if message.key in text and not trains_on_after(text, message.key, MIN_STEPS_AFTER)
        for h in find_known_messages(exhibit, (message,))[:1]
    )
    if failed:
        heard = tuple(msgspec.structs.replace(h, severity=Severity.ERROR) for h in heard)
    return Testimony(heard=heard) if heard else None


def _breaks_off(text: str) -> bool:
    """Return True if the text ends within a traceback, so that the exception is missing."""
    lines = [*map(strip_rank_label, text.split("\n"))]
    traceback = cut_traceback(lines)
    return begun_traceback(lines) is not None if traceback is None else not traceback.message


READER = LogReader(read=read_log)
