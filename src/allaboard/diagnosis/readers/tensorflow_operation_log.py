"""Messages of TensorFlow's operations and allocators: whose memory ran out, and who sent no tensor."""

from __future__ import annotations

from allaboard.analysis.log_ends.post_traceback_output import progress_lines, trains_on_after
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Testimony

_GPU_MEMORY = (
    "smaller batches; nvidia-smi on that host shows whether another process is on the same GPU"
)
_ALLOCATOR = (
    "its wording from the source of TensorFlow 1.4 to 2.21 (bfc_allocator.cc and op kernels)"
)
_MEMORY = (
    KnownMessage(
        key="OOM when allocating tensor",
        pattern=r"OOM when allocating tensor with shape ?\[[\d,]*\][^\n]{0,40}? on "
        r"/job:(?P<job>(?!localhost)\w+)/(?:replica:\d+/)?task:(?P<task>\d+)/device:(?P<device>GPU:\d+)",
        rule="RES001",
        says="{job} {task} ran out of memory of its {device}",
        fix=_GPU_MEMORY,
        proves_not="that its own process wrote this: a chief reports what a task ran for it",
        sample="2020-05-03 02:06:12.464132: W tensorflow/core/framework/op_kernel.cc:1655] OP_REQUIRES "
        "failed at conv_ops.cc:501 : Resource exhausted: OOM when allocating tensor with shape[64,32,32,192] "
        "and type float on /job:worker/replica:0/task:2/device:GPU:0 by allocator GPU_0_bfc",
        source=_ALLOCATOR,
    ),
    KnownMessage(
        key="OOM when allocating tensor",
        pattern=r"OOM when allocating tensor with shape ?\[[\d,]*\][^\n]{0,40}? on "
        r"/job:(?P<job>(?!localhost)\w+)/(?:replica:\d+/)?task:(?P<task>\d+)/(?:device:CPU:|cpu:)\d+",
        rule="RES001",
        says="{job} {task} ran out of memory of its host",
        fix="give the job more memory, or use smaller batches; on its host: free -g",
        sample="OP_REQUIRES failed at cwise_ops_common.cc:70 : Resource exhausted: OOM when allocating "
        "tensor with shape[640000,3200] and type float on /job:worker/replica:0/task:2/device:CPU:0 by "
        "allocator cpu",
        source=_ALLOCATOR,
    ),
    KnownMessage(
        key="OOM when allocating tensor",
        pattern=r"OOM when allocating tensor with shape ?\[[\d,]*\][^\n]{0,40}? on "
        r"/job:localhost/(?:replica:\d+/)?task:\d+/device:(?P<device>GPU:\d+)",
        rule="RES001",
        says="a process ran out of memory of its {device}",
        fix=_GPU_MEMORY,
        sample="OP_REQUIRES failed at conv_ops.cc:501 : Resource exhausted: OOM when allocating tensor with "
        "shape[64,32] and type float on /job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc",
        source=_ALLOCATOR,
    ),
    KnownMessage(
        key="ran out of memory trying to allocate",
        # What the caller can do without is no failure; and the operation's own message says more.
        pattern=r"Allocator \((?P<device>GPU_\d+_bfc)\) ran out of memory trying to allocate "
        r"(?P<many>[\d.]+[KMGT]?i?B)(?![^\n]{0,300}not a failure)(?!.{0,900}OOM when allocating tensor)",
        rule="RES001",
        says="a process ran out of GPU memory ({device}): it asked for {many} more",
        fix=_GPU_MEMORY,
        sample="2020-05-03 02:06:12.462209: W tensorflow/core/common_runtime/bfc_allocator.cc:434] Allocator "
        "(GPU_0_bfc) ran out of memory trying to allocate 31.84MiB (rounded to 33387264)",
        source=_ALLOCATOR,
    ),
    KnownMessage(
        key="CUDA_ERROR_OUT_OF_MEMORY",
        pattern=r"failed to allocate (?P<many>[\d.]+[KMGT]?i?B?) \((?P<bytes>\d+) ?bytes\) from device: "
        r"(?:RESOURCE_EXHAUSTED: ?:? ?)?CUDA_ERROR_OUT_OF_MEMORY(?!.{0,900}(?:OOM when allocating "
        r"tensor|ran out of memory trying))",
        rule="RES001",
        says="a process ran out of GPU memory: CUDA could not give it {many}",
        fix="nvidia-smi   # on that host: which other process holds the GPU? One process a GPU: "
        "CUDA_VISIBLE_DEVICES; or tf.config.experimental.set_memory_growth",
        proves_not="that this model is too large: TensorFlow asks for nearly all memory of a GPU at its "
        "start, and another process may hold it",
        sample="2018-02-07 21:05:47.513392: E tensorflow/stream_executor/cuda/cuda_driver.cc:936] failed to "
        "allocate 9.91G (10640768640 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        source="its wording from the source of TensorFlow 1.0 to 2.21 (cuda_driver.cc); `: out of memory` "
        "since 1.11",
    ),
)
TPU_BUFFER = KnownMessage(
    key="Error allocating device buffer: ",
    pattern=r"Error allocating device buffer: Attempting to allocate (?P<many>[\d.]+[KMGT]?)"
    r"\. That was not possible\. There are (?P<free>[\d.]+[KMGT]?) free",
    rule="RES001",
    says="a process ran out of the memory of its TPU: it asked for {many}, and {free} are free",
    fix="a smaller batch per device, or more of the model sharded or recomputed (jax.checkpoint); "
    "jax.profiler.save_device_memory_profile('memory.prof') shows who holds it",
    explains=("LOG012", "EXIT005"),
    sample="TpuClient::AllocateBuffer returning error after 1 attempt(s): RESOURCE_EXHAUSTED: Error "
    "allocating device buffer: Attempting to allocate 224.00M. That was not possible. There are 77.60M "
    "free.; (0x0x0_HBM0)",
    source="its wording from reports of JAX 0.4 to 0.8 (tpu_pjrt_client.cc)",
)
LOST_SENDER = KnownMessage(
    key="] Unavailable: ",
    pattern=r'op_kernel\.cc:\d+\] Unavailable: (?:\{"created"[^\n]{0,300}"description":"EOF"|Endpoint read '
    r'failed|Socket closed|OS Error)[^\n]{0,300}\n[^\n]{0,300}= _Recv\[[^\n]{0,300}?send_device="/job:'
    r"(?P<job>(?!localhost)\w+)/(?:replica:\d+/)?task:(?P<task>\d+)",
    rule="EXIT005",
    says="{job} {task} went away while a tensor was awaited from it",
    fix="read the log of {job} {task} first, and the kernel's: dmesg -T | grep -i kill; if it was started "
    "again, start the whole job again from its checkpoint",
    proves_not="that it began there: it may itself have ended because of another",
    awaits=True,
    sample='W tensorflow/core/framework/op_kernel.cc:993] Unavailable: {"created":"@1487751897.1",'
    '"description":"EOF","file":"tcp_posix.c","grpc_status":14}\n     [[Node: Assign_1_S295 = '
    '_Recv[_start_time=0, client_terminated=false, recv_device="/job:worker/replica:0/task:0/cpu:0", '
    'send_device="/job:ps/replica:0/task:0/cpu:0"]()]]',
    source="from a report of TensorFlow 1.0",
)
MESSAGES = (*_MEMORY, TPU_BUFFER, LOST_SENDER)
MIN_TRAINING_LINES = 3
"""Lines of a training that show that it goes on: a worker may write that of a step it had begun before."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    counted: list[KnownMessage] = []
    memory_mention = max(text.rfind(m.key) for m in _MEMORY)
    # Many allocations are tried again with less: they count only if the program did not go on.
    if memory_mention >= 0 and not progress_lines(text[memory_mention:].split("\n")[1:]):
        counted += _MEMORY
    counted += [
        m for m in (TPU_BUFFER, LOST_SENDER) if not trains_on_after(text, m.key, MIN_TRAINING_LINES)
    ]
    heard = find_known_messages(exhibit, counted)
    return Testimony(heard=heard) if heard else None


READER = LogReader(read=read_log)
