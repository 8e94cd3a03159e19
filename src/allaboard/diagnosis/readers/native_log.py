"""Messages of native code that found a condition violated and ended its process (`Check failed`)."""

from __future__ import annotations

import msgspec

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Certainty, Exhibit, Heard, Testimony, Who

_CHECK_FAILED = "LOG011"
"""The rule that reports a check that failed in native code."""
_FATAL = r"(?:: F |\bF\d{4,8} )[^\n]{0,160}?\b(?P<file>[\w.-]+\.(?:cc|cpp|cu|h|hpp|inc)):(?P<line>\d+)\] "
"""Head of a fatal record of TensorFlow's logger, of glog and of absl: they end the process by SIGABRT."""


def _no_thread(key: str, pattern: str, sample: str, source: str) -> KnownMessage:
    """Return the message of one library that the system gave it no more threads."""
    return KnownMessage(
        key=key,
        pattern=pattern,
        rule="LOG011",
        says="a process could not start another thread: a limit on processes and threads is reached",
        fix="ulimit -u; cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids.current   # on that host, in the "
        "container: raise the limit (ulimit -u, docker run --pids-limit, the kubelet's podPidsLimit), or "
        "start fewer threads: OMP_NUM_THREADS, DataLoader workers, private thread pools of tf.data",
        proves_not="which limit: that of the user, that of the container, and memory for stacks look the "
        "same",
        sample=sample,
        source=source,
    )


_BROKEN_CONNECTION = r"[Cc]onnection reset|[Bb]roken pipe|[Cc]onnection closed"
LOST_CONNECTION = rf"{_BROKEN_CONNECTION}|[Cc]onnection refused"
"""Words of a check that a peer's end, or absence, violated: who fails it is a victim."""
_PEER_OF_CHECK = (
    _FATAL
    + r"Check failed: [^\n]{0,160}?(?:\b(?:peer|remote|addr|address|host|node|to|from)[= :]{1,2}"
    r"\[?(?P<peer>(?:\d{1,3}\.){3}\d{1,3}|(?!peer\b)[\w-]{1,63}(?:\.[\w-]{1,63}){1,8})[\]:, ][^\n]{0,80}?)?"
)
PEER_LOST = KnownMessage(
    key="Check failed: ",
    pattern=rf"{_PEER_OF_CHECK}(?P<why>{_BROKEN_CONNECTION})",
    rule="EXIT005",
    says="the connection to {peer} broke ({why}): who was there ended first, and this process could not go "
    "on without it",
    fix="read the log of the process on {peer} first, and on that host dmesg -T | grep -i kill",
    proves_not="that it began there: it may itself have ended because of another",
    sample="F0308 17:17:08.399897 46342 SocketChannel.cpp:54] Check failed: len >= 0  peer=192.0.2.7: "
    "Connection reset by peer [104]",
    source="its wording from the sources of glog's users (PaddlePaddle 0.9 to 1.8, ps-lite)",
)
PEER_REFUSED = KnownMessage(
    key="Check failed: ",
    pattern=_PEER_OF_CHECK + r"[Cc]onnection refused",
    rule="EXIT005",
    says="nobody listened at {peer} (Connection refused): the process there had not started, or had "
    "ended, and this process could not go on without it",
    fix="read the log of the process on {peer} first, and on that host dmesg -T | grep -i kill",
    proves_not="that it began there: it may itself have ended because of another, and may have another port",
    sample="F0719 10:40:45.100778 26612 LightNetwork.cpp:397] Check failed: error >= 0 ERROR connecting to "
    "192.0.2.7: Connection refused [111]",
    source="its wording from the source of PaddlePaddle 0.9 (LightNetwork.cpp)",
)
MESSAGES = (
    _no_thread(
        "via pthread_create() failed",
        r"Check failed: ret == 0 \(11 vs\. 0\) ?Thread [^\n]{0,80}creation via pthread_create\(\) failed",
        "2021-07-01 10:01:11.101101: F tensorflow/core/platform/default/env.cc:73] Check failed: ret == 0 "
        "(11 vs. 0)Thread creation via pthread_create() failed.",
        "its wording from the source of TensorFlow 2.2 to 2.21 (platform/default/env.cc); with the thread's "
        "name since 2.5",
    ),
    _no_thread(
        "pthread_create failed",
        r"(?:\(11 vs\. 0\)[^\n]{0,40} pthread_create failed|blas_thread_init: pthread_create failed for "
        r"thread)",
        "F20230801 21:50:32.905575  4768 threadpool_pthread_impl.cc:51] Check failed: res == 0 (11 vs. 0) "
        "pthread_create failed",
        "its wording from the sources of glog's users and of OpenBLAS 0.3 (blas_server.c)",
    ),
    _no_thread(
        "blas_thread_init: pthread_create: ",
        r"blas_thread_init: pthread_create: Resource temporarily unavailable",
        "OpenBLAS blas_thread_init: pthread_create: Resource temporarily unavailable",
        "its wording from the source of OpenBLAS 0.2 (blas_server.c)",
    ),
    _no_thread(
        "Thread creation failed",
        r"libgomp: Thread creation failed: Resource temporarily unavailable",
        "libgomp: Thread creation failed: Resource temporarily unavailable",
        "its wording from the source of GCC (libgomp)",
    ),
    _no_thread(
        "std::system_error",
        r"instance of 'std::system_error'\s+what\(\): +Resource temporarily unavailable",
        "terminate called after throwing an instance of 'std::system_error'\n  what():  Resource temporarily "
        "unavailable",
        "its wording from the source of GCC (std::thread)",
    ),
    KnownMessage(
        key="'std::bad_alloc'",
        pattern=r"terminate called after throwing an instance of 'std::bad_alloc'",
        rule="RES001",
        says="a process could get no more memory of its host (std::bad_alloc), and ended",
        fix="free -g; ulimit -v; cat /sys/fs/cgroup/memory.max   # on its host, in its container (a pod: "
        "kubectl describe pod): raise the limit, or need less: a smaller batch, fewer workers, more "
        "parameter servers",
        explains=("EXIT001", "EXIT005"),
        sample="terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc",
        source="its wording from the source of GCC (libstdc++'s verbose terminate handler)",
    ),
    KnownMessage(
        key=" not available in this library",
        pattern=_FATAL + r"(?P<symbol>\w{3,120}) not available in this library",
        rule="LOG011",
        says="libtpu of this host has no {symbol}, which its framework calls: both are of different "
        "versions, "
        "and the process ended",
        fix="pip list | grep -iE 'jax|libtpu|tensorflow|torch'   # on that host: pip install -U 'jax[tpu]' "
        "-f "
        "https://storage.googleapis.com/jax-releases/libtpu_releases.html (torch_xla: torch_xla[tpu]), or a "
        "TPU VM with the runtime version of that framework",
        certainty=Certainty.CERTAIN,
        explains=("EXIT001", "EXIT002", "LOG012"),
        sample="2021-07-07 10:52:52.676541: F external/org_tensorflow/tensorflow/core/tpu/"
        "tpu_executor_init_fns.inc:110] TpuTransferManager_Reset not available in this library.",
        source="its wording from the source of TensorFlow 2.4 to 2.21 (tpu_api_dlsym_set_fn.h), in JAX",
    ),
    KnownMessage(
        key="Check failed: ",
        pattern=_FATAL
        + r"Check failed: (?![^\n]{0,200}(?:pthread_create|memory|CUDA_ERROR|"
        + LOST_CONNECTION
        + r"))(?P<what>[^\n]{1,160})",
        rule=_CHECK_FAILED,
        says="native code ended its process at {file}:{line}: Check failed: {what}",
        fix="read the lines before it in this log; search for the check in the issues of the library: {file}",
        proves_not="that the library is at fault: what it was given may be",
        certainty=Certainty.LIKELY,
        sample="2021-07-01 10:01:11.101101: F tensorflow/core/framework/tensor_shape.cc:572] Check failed: "
        "size >= 0 (-5 vs. 0)",
        source="its wording from the sources of TensorFlow's logger, glog and absl",
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = tuple(
        _about_speaker(h, exhibit) for h in _first_checks(find_known_messages(exhibit, MESSAGES))
    )
    lost = find_known_messages(exhibit, (PEER_LOST, PEER_REFUSED))
    heard += tuple(_unnamed_peer(h) for h in lost)
    return Testimony(heard=heard) if heard else None


def _first_checks(heard: tuple[Heard, ...]) -> tuple[Heard, ...]:
    """Return the messages with the first of the checks that failed in processes that nobody names: the others
    fell after it."""
    checks = [h for h in heard if h.rule == _CHECK_FAILED]
    if any(h.speakers[0].rank >= 0 for h in checks):
        return heard
    return tuple(h for h in heard if h not in checks[1:])


def _unnamed_peer(heard: Heard) -> Heard:
    """Return the message in words that do without the peer's address, if it has none."""
    return msgspec.structs.replace(
        heard,
        says=heard.says.replace("connection to  broke", "connection to a peer broke").replace(
            "listened at  (", "listened at the address of a peer ("
        ),
        fix=heard.fix.replace("process on  first, and on that host", "peer first, and on its host"),
    )


def _about_speaker(heard: Heard, exhibit: Exhibit) -> Heard:
    """Return the message with the process that wrote it as the one that it is about, if it is known."""
    rank = heard.speakers[0].rank
    if rank >= 0:
        return msgspec.structs.replace(heard, about=(Who(index=rank, rank=rank),))
    if not exhibit.host:
        return heard
    return msgspec.structs.replace(
        heard, says=heard.says.replace("a process", f"a process of {exhibit.host}", 1)
    )


READER = LogReader(read=read_log)
