"""Exceptions that frameworks raise if a distributed job is set up wrongly, and the advice for each.

The line that raised is seldom to blame. The wording is that of PyTorch 2.13, TensorFlow 2.21 and JAX 0.10,
and of their releases since 2.0.
"""

from __future__ import annotations

import shlex

from allaboard.analysis.failures.mistakes.installation_mistakes import INSTALLATION_MISTAKES
from allaboard.analysis.failures.mistakes.known_mistake import Remedy
from allaboard.analysis.failures.mistakes.refused_index import refused_index
from allaboard.analysis.failures.mistakes.storage_mistakes import STORAGE_MISTAKES
from allaboard.analysis.failures.mistakes.tensorflow_mistakes import TENSORFLOW_MISTAKES
from allaboard.analysis.failures.mistakes.torch_mistakes import TORCH_MISTAKES
from allaboard.analysis.identity_cache import cached_by_identity
from allaboard.facts import Raised
from allaboard.late_pattern import compile_late

_SAME_MODEL = (
    "build the same model on every rank: look for what differs there (a branch on the rank, a config, a "
    "vocabulary, a checkpoint or a version of the code on one host); allaboard preflight compares the hosts"
)
_ADVICE_TABLE = tuple(
    (compile_late(pattern), known_error_advice)
    for pattern, known_error_advice in (
        (
            r"environment variable (?P<name>\w+) expected, but not set",
            "start it with a launcher that sets {name}: allaboard run -n N SCRIPT, torchrun, srun allaboard "
            "run SCRIPT",
        ),
        (
            r"^'(?P<name>(?:LOCAL_|GROUP_)?RANK|(?:LOCAL_)?WORLD_SIZE|MASTER_ADDR|MASTER_PORT)'$",
            "start it with a launcher that sets {name}: allaboard run -n N SCRIPT, torchrun, srun allaboard "
            "run SCRIPT",
        ),
        (
            r"^'TF_CONFIG'$",
            "start it with a launcher that sets TF_CONFIG: allaboard run -n N SCRIPT, a TFJob; or export it "
            "on each host, and try it there: allaboard check",
        ),
        (
            r"`task_type` .{1,40} (?:is not in the `cluster_spec`|not found in cluster_spec)|`task_id` "
            r"\d+ exceeds the maximum id",
            "the task in TF_CONFIG is not in its cluster: run allaboard check with this TF_CONFIG",
        ),
        (
            r"Current RPC agent is not set|RPC has not been initialized",
            "call torch.distributed.rpc.init_rpc(name, rank=, world_size=) before it, in this very process "
            "(Pipe and RRefs need it, on one host too)",
        ),
        (
            r"^(?:\[Errno 98\] |\[Errno 48\] )?Address already in use$",
            "the port is taken: ss -ltnp on that host shows who holds it (an earlier job, or another of this "
            "host); torchrun --standalone, or a MASTER_PORT of its own for each job",
        ),
        (
            r"Default process group (?:has not been|is not) initialized",
            "call init_process_group before it, in this very process: a process that spawn or a DataLoader "
            "started has no group yet",
        ),
        (
            r"trying to initialize the default process group twice",
            "call init_process_group once per process: remove the second (accelerate, Lightning and Trainer "
            "call it themselves), or check torch.distributed.is_initialized() first",
        ),
        (
            r"CUDA error: invalid device ordinal",
            "this rank asks for a GPU that it does not see: compare LOCAL_RANK with CUDA_VISIBLE_DEVICES and "
            "nvidia-smi -L; start no more processes on a host than it has GPUs",
        ),
        (
            r"driver on your system is too old|CUDA driver version is insufficient",
            "the GPU driver of this host is too old for this build: nvidia-smi "
            "--query-gpu=driver_version --format=csv; upgrade it, or install a build for an older CUDA",
        ),
        (
            r"Duplicate GPU detected : rank (?P<one>\d+) and rank (?P<two>\d+)",
            "ranks {one} and {two} use one GPU: torch.cuda.set_device(int(os.environ['LOCAL_RANK'])) "
            "before init",
        ),
        (
            r"Could not parse coordinator IP address from Open MPI|Failed to recognize coordinator address"
            r"|Automatic Distributed initialization can not proceed",
            "give jax.distributed.initialize() all three of coordinator_address=, num_processes= and "
            "process_id=: JAX could not take them from this launcher's environment",
        ),
        (
            r"local_rank (?P<rank>\d+) exceeds available GPUs in CUDA_VISIBLE_DEVICES",
            "torchrun starts more processes than there are GPUs: --nproc-per-node=gpu, or more of them in "
            "CUDA_VISIBLE_DEVICES",
        ),
        (
            r"Unable to perform re-rendezvous using",
            "call init_process_group once per process: with env:// and tcp:// a second call cannot meet; or "
            "destroy_process_group() in all of them, and another MASTER_PORT",
        ),
        (
            r"[Ss]ee (?:the )?(?:root cause|stack trace)\b[^.\n]{0,20}(?:above|for the root cause)"
            r"|check the stack trace above",
            "read the exception of the other process that stands above it; if none does, collect the logs of "
            "all processes: allaboard diagnose LOG...",
        ),
        (
            r"ProcessGroupNCCL is only supported with GPUs, no GPUs found",
            "this process sees no GPU: nvidia-smi -L, CUDA_VISIBLE_DEVICES, --gpus of the container; on "
            "CPUs use backend='gloo'",
        ),
        (
            r"use_libuv was requested but PyTorch was buil[dt] without libuv",
            "set USE_LIBUV=0 before the start: this build of PyTorch has no libuv",
        ),
        (
            r"Distributed package doesn't have NCCL built in",
            "this PyTorch is a build without NCCL: install the one for CUDA, or use backend='gloo'",
        ),
        (
            r"No backend type associated with device type (?P<device>\w+)",
            "the tensor is on {device}, and the group has no backend for that: move it to the group's "
            "device, or init_process_group('cpu:gloo,cuda:nccl')",
        ),
        (
            r"Unable to find address for: (?P<name>\S+)",
            "this host has no interface {name}: ip -br address; set GLOO_SOCKET_IFNAME on each host to one "
            "of its own",
        ),
        (
            r"ss1\.ss_family == ss2\.ss_family",
            "the hosts' own names resolve to IPv4 first on some and to IPv6 first on others: compare getent "
            "ahosts $(hostname) and sysctl net.ipv6.conf.all.disable_ipv6; or, with PyTorch, set "
            "GLOO_SOCKET_IFNAME on every host",
        ),
        (
            # Bare words of strerror(3): torch's FileStore.
            r"^(?:Illegal seek|Read-only file system|Stale file handle|Input/output error)$",
            "this host cannot use the file of the file:// rendezvous: look at it and its disk (ls -l, "
            "mount), or meet at tcp://HOST:PORT",
        ),
        (r"DDP expects same model across all ranks", _SAME_MODEL),
        (r"params\[\d+\] in this process with sizes .{1,200} appears not to match", _SAME_MODEL),
        (
            r"Missing key\(s\) in state_dict: \"module\.",
            "the checkpoint was saved without DDP's 'module.': load it before the model is wrapped, or into "
            "model.module",
        ),
        (
            r"Unexpected key\(s\) in state_dict: \"module\.",
            "the checkpoint was saved with DDP's 'module.': save model.module.state_dict(), or load it "
            "into the wrapped model",
        ),
        (
            r"Max retries exceeded|Temporary failure in name resolution|offline mode is enabled"
            r"|We couldn't connect to 'https?://",
            "this host cannot reach the server that it wants to download from: download first, to a disk "
            "that all hosts share (HF_HOME, TORCH_HOME), and set HF_HUB_OFFLINE=1",
        ),
        (
            r"Collective ops must be configured at program startup",
            "make MultiWorkerMirroredStrategy before anything else of TensorFlow: no tensor, dataset "
            "or model before",
        ),
        (
            r"must be called before any JAX (?:computations|calls)",
            "call jax.distributed.initialize() first in the program: before jax.devices(), arrays and "
            "libraries that make some on import",
        ),
        (
            r"^EOF when reading a line$",
            "pass the answer as an option or a variable, and ask only if sys.stdin.isatty(): standard input "
            "of a rank is empty (under allaboard /dev/null, under others mostly)",
        ),
        (
            r"coordinator_address should be defined|Number of processes must be defined|"
            r"process id of the current process must be defined",
            "give jax.distributed.initialize() all three of coordinator_address=, num_processes= and "
            "process_id=; or none, under allaboard run -n N SCRIPT or a launcher that JAX knows",
        ),
    )
)


_MISTAKES = (*STORAGE_MISTAKES, *TORCH_MISTAKES, *TENSORFLOW_MISTAKES, *INSTALLATION_MISTAKES)


def known_error_advice(error: Raised) -> str:
    """Return what to do about this exception; "" if it is not a known one."""
    remedy = known_remedy(error)
    return remedy.fix if remedy is not None else ""


def remedy_of_last_line(line: str) -> Remedy | None:
    """Return the remedy for a program that printed this line and exited, without an exception; None if it is
    not known."""
    return known_remedy(Raised(type="SystemExit", message=line, raised_at=0.0))


# Readers, rules and policy ask about one exception many times, each time more than a hundred patterns.
@cached_by_identity(max_entries=64)
def known_remedy(error: Raised) -> Remedy | None:
    """Return the cause of this exception ("" if its message says it) and what to do; None if it is not
    known."""
    if not error.message:
        return None
    for mistake in _MISTAKES:
        if (remedy := mistake.remedy_of(error)) is not None:
            return remedy
    for pattern, text in _ADVICE_TABLE:
        match = pattern.search(error.message)
        if match is not None:
            return Remedy("", text.format(**match.groupdict()) if match.groupdict() else text)
    return refused_index(error)


_ERRNO = compile_late(r"^\[Errno (?P<number>2|13|20)\] [^:\n]{1,60}: '(?P<path>/[^'\n]{1,500})'")
"""Matches ENOENT, EACCES and ENOTDIR with an absolute path, as Python words them."""
_NO_PERMISSION = "13"


def absent_path(error: Raised) -> str:
    """Return the absolute path that is not there or may not be entered, quoted for a shell; "" if the message
    names none."""
    match = _ERRNO.match(error.message)
    return shlex.quote(match["path"]) if match is not None else ""


def missing_path_advice(error: Raised) -> str:
    """Return the next step for a path that a library's own line could not open; "" for any other exception.

    What the user's line opens itself is that line's matter.
    """
    match = _ERRNO.match(error.message)
    innermost = next((f for f in error.frames if not f.is_standard_library), None)
    if match is None or innermost is None or innermost.is_user:
        return ""
    path = shlex.quote(match["path"])
    if match["number"] == _NO_PERMISSION:
        return f"namei -l {path}; id   # on its host: who may enter and read it?"
    return (
        f"ls -ld {path}; findmnt -T {path}   # on its host, and where it worked: what all ranks read or "
        "write must be on a disk that all hosts share"
    )
