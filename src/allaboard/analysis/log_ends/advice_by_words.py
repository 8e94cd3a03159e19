"""The first thing to try for an error whose wording is new, by what it is about: an address, a port, a GPU.

Pure. Frameworks word their errors differently, but they name the same things; what to look at follows from
these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from allaboard.analysis.log_ends.named_checks import named_checks, without_names
from allaboard.late_pattern import compile_late

_NUMBERS = r"(?!0\.0\.0\.0)\d{1,3}(?:\.\d{1,3}){3}"
_NAME = r"[A-Za-z][\w-]{1,62}(?:\.[\w-]{1,62}){0,8}"
_SOURCE = r"[\w-]{1,80}\.(?:cc|cpp|cu|cuh|h|hpp|py|c|go|rs):"
_ADDRESS = compile_late(
    rf"\[(?:::ffff:)?(?P<host>{_NUMBERS}|{_NAME})\]:(?P<port>\d{{2,5}})\b"
    rf"|\((?P<host2>{_NUMBERS}|{_NAME}), (?P<port2>\d{{2,5}})\)"
    rf"|(?<![\w./:\[])(?:(?:grpc|tcp|http)://)?(?P<host3>{_NUMBERS}|(?=[^:\s]{{0,80}}[.-])(?!{_SOURCE}){_NAME})"
    r":(?P<port3>\d{4,5})\b(?!:)"
)
"""An address as sockets' messages write it: of numbers, or of a name with a dot or a hyphen in it."""
_CONNECTING = compile_late(
    r"connect|refused|unreachable|time(?:d )?[ -]?out|reset|closed|no route|deadline", re.IGNORECASE
)
_PORT_TAKEN = compile_late(
    r"address (?:is )?already in use|EADDRINUSE|failed to (?:bind|listen)|cannot bind"
    r"|\bbind(?:ing)?(?: (?:to )?port:? \d+)? (?:failed|error)|port \d+ is (?:in use|taken|occupied)",
    re.IGNORECASE,
)
_PORT = compile_late(r"\b[Pp]ort:? (?P<port>\d{2,5})\b")
_NO_NAME = compile_late(
    r"name or service|name resolution|resolve|unknown host|host not found|host ?name can(?:'t|not) be empty"
    r"|find (?:the )?address for|getaddrinfo",
    re.IGNORECASE,
)
_NO_ROUTE = compile_late(r"no route to host|network is unreachable|EHOSTUNREACH", re.IGNORECASE)
_LOST_CONNECTION = compile_late(
    r"connection (?:is |was |has been )?(?:shut down|not accepted|closed|reset|lost|aborted)|broken pipe"
    r"|socket closed|\bstream (?:removed|closed)|\beof\b|end of file|failed to accept connection",
    re.IGNORECASE,
)
_CHECK = compile_late(
    r"Check failed: (?P<check>[^\n]{1,120}?) ?\((?P<one>[^\s()]{1,40}) vs\. (?P<two>[^\s()]{1,40})\)"
)
"""A comparison of glog or dmlc that failed, with the values of both sides."""
_HELD_BY = compile_late(
    r"(?:in use|held|used|locked) by (?:the )?process (?:with pid )?(?P<pid>\d{2,9})"
)
_DEVICE_FILE = compile_late(r"(?P<path>/dev/[\w/]{2,40})")
_GPU_ACCESS = compile_late(
    r"illegal (?:memory|address|instruction)|launch failure|misaligned|device-side|hardware exception",
    re.IGNORECASE,
)
_GPU = compile_late(
    r"\b(?:CUDA|GPU|cuda:\d|HIP|ROCm|cuDNN|cuBLAS|CUBLAS\w*|CUDNN\w*|StreamExecutor)\b"
)
_AMD = compile_late(r"\b(?:HSA\w*|ROCm|HIP|amdgpu|rocdevice|MIOpen|RCCL|HSAIL)\b|\bby GPU node-\d")
_NPU = compile_late(r"\b(?:NPU|HCCL|HCCP|CANN|Ascend|aclrt\w*|Hccl\w+)\b")
_TPU = compile_late(r"\bTPU\b|libtpu")
_NCCL = compile_late(r"\bNCCL\b|nccl[A-Z]\w+")
_GLOO = compile_late(r"\b[gG]loo(?:\b|[A-Z])|gloo/transport")
_OTHER_RANKS = compile_late(
    r"\b(?:other|remaining|some|remote|all) (?:ranks?|workers?|processes|nodes?|peers?|members?|hosts?)\b"
    r"[^\n]{0,80}\b(?:not|(?:do|does|did|has|have|had|was|were|is|are)(?:n't)?|failed|fails?|late|slow(?:er)?|missing|dead|died|stuck|hang\w*)\b"
    r"|(?:did|do|has|have|had)n(?:'t|ot) [^\n]{0,60}\bother (?:ranks?|workers?|processes|nodes?)\b",
    re.IGNORECASE,
)
_GPU_LOST = compile_late(
    r"GPU is lost|device handle for GPU|fallen off the bus|GPU_IS_LOST|No devices were found"
)
_NOT_OWN_ADDRESS = compile_late(
    r"\b10049\b|not valid in its context|[Cc]annot assign requested address|\bEADDRNOTAVAIL\b"
)
_MEETING = compile_late(
    r"rendezvous|barrier|store|init(?:ializ)?ing process group|world[_ ]size|Connect\(\)"
    r"|coordinat|register",
    re.IGNORECASE,
)
_LATE = compile_late(
    r"time(?:d )?[ -]?out|DEADLINE|did not (?:join|arrive|answer)|closed", re.IGNORECASE
)
_MEMORY = compile_late(
    r"out ?of ?memory|cannot allocate|memory limit|physical memory|\bOOM\b|bad_alloc"
    r"|exceeding (?:memory )?(?:thresholds|limits)|GC overhead limit",
    re.IGNORECASE,
)
_DISK = compile_late(
    r"no space left|disk quota|file write failed|unexpected pos|PytorchStreamWriter", re.IGNORECASE
)
_NOT_INSTALLED = compile_late(
    r"['\"]?(?P<name>[A-Za-z][\w.-]{1,40})['\"]?:? (?:is )?(?:not installed|command not found)"
    r"|doesn't have (?P<name2>\w+) built in|Unable to load (?P<name3>\w+) library",
    re.IGNORECASE,
)
_LIBRARY = compile_late(
    r"(?P<library>lib[\w+-]{1,60}\.so[.\d]*)\b[^\n]{0,40}: cannot open shared object file"
)
_CONTAINER = compile_late(r"nvidia-container-cli|nvidia-container-runtime|OCI runtime")
_HANGUP = compile_late(r"SIGHUP|\bsignal:? 1\b|Received 1 death signal")
_NOT_FINITE = compile_late(
    r"\b(?:nan|inf)\b[^\n]{0,60}\bgrad\w*|\bgrad\w*[^\n]{0,60}\b(?:nan|inf|not finite)\b",
    re.IGNORECASE,
)
_KILLED = compile_late(r"SIGKILL|\bsignal 9\b|exit_?code:? ?-9\b|exit (?:code|status):? 137\b")
_CRASHED = compile_late(r"SIGSEGV|\bsignal 11\b|exit_?code:? ?-11\b|exit (?:code|status):? 139\b")
_VARIABLE = compile_late(
    r"\b(?P<name>[A-Z][A-Z0-9]{2,}(?:_[A-Z0-9]+)+) (?:is )?not (?:found|set|defined)"
)
_RANK = compile_late(
    r"\bfrom \[(?P<rank>\d{1,6})\]|\b(?:rank|worker|task) (?P<rank2>\d{1,6})\b(?! [<>=]|\.\d)"
    r"|\b(?<!worker )process (?P<rank3>\d{1,3})\b(?! [<>=])"
)
_MEMBER = compile_late(
    r"\b(?:from|to|with|by|for) '?(?P<name>(?:trainer|worker|ps|server|actor|learner|node|host|peer|member"
    r"|replica|agent|client|scheduler)[-_]?\d{1,6})\b"
)
"""Another member that a message calls by its role and number."""
_RANK_RANGE = compile_late(
    r"\brank < size|rank \d+ (?:is )?(?:out of range|exceeds)", re.IGNORECASE
)
_POD = compile_late(
    r'\b[Pp]od(?: "|: ?|/)(?P<pod>[a-z0-9][\w.-]{1,252}\w)'
    r"|^(?P<pod2>[a-z0-9][a-z0-9.-]{2,252}) +\d{1,3}/\d{1,3} +[A-Z]"
)
"""A pod that a message names, or whose row of kubectl's table it is."""
MAX_ADVICE = 2
"""Things to try that are named; more are no first step."""


class _Topic(NamedTuple):
    """What an error may be about, and what to look at then."""

    words: re.Pattern[str]
    advice: str


_OTHERS_FAILED = (
    "read the logs of the other ranks, on all hosts: which of them failed, or is late? While they hang, on "
    "each host: allaboard diagnose"
)
_TOPICS = (
    _Topic(
        _GPU_LOST,
        "on that host: dmesg -T | grep -iE 'xid|NVRM'; the driver has lost that GPU: drain the host and "
        "reboot it; if it happens again, have the GPU, its slot and its power examined",
    ),
    _Topic(
        _NOT_OWN_ADDRESS,
        "the name leads to an address that this host does not have: on one host MASTER_ADDR=127.0.0.1; else "
        "take the name out of the hosts file (Windows: C:\\Windows\\System32\\drivers\\etc\\hosts; Docker "
        "writes kubernetes.docker.internal there)",
    ),
    _Topic(
        _PORT_TAKEN,
        "on that host: ss -ltnp   # who holds the port? Each job needs one of its own (MASTER_PORT, "
        "DMLC_PS_ROOT_PORT, the address in TF_CONFIG); and is the address one of this host: ip -br address",
    ),
    _Topic(
        _RANK_RANGE,
        "env | grep -E 'RANK|SIZE'   # on that host, in the process: a rank from 0 to the size less one "
        "(RANK and "
        "WORLD_SIZE, HOROVOD_RANK and HOROVOD_SIZE); one left from another start has another size",
    ),
    _Topic(
        _CONTAINER,
        "on that host, as the same user: nvidia-container-cli -k -d /dev/tty info; getenforce   # may this "
        "container be given the driver's files and devices? A rootless one may mount and own less",
    ),
    _Topic(
        _HANGUP,
        "its terminal was closed, which ends what nohup started, too: start it in tmux, with setsid, or in a "
        "batch job",
    ),
    _Topic(
        _NOT_FINITE,
        "look at the batch of that step on that rank, and at the steps before: is the loss finite there? A "
        "lower "
        "learning rate, or bf16, or the checkpoint before; the same step on another GPU tells a broken one",
    ),
    _Topic(
        _KILLED,
        "on its host: dmesg -T | grep -iE 'killed process|oom'; then ask the batch system who ended it",
    ),
    _Topic(
        _CRASHED,
        "PYTHONFAULTHANDLER=1 for one run shows the Python line that crashed; ulimit -c unlimited leaves a "
        "core",
    ),
    _Topic(
        _MEMORY,
        "on that host: free -g; dmesg -T | grep -iE 'oom|killed'; need less memory, or ask for more",
    ),
    _Topic(_DISK, "on that host: df -h; df -i   # of the folder that it writes to; quota -s"),
    _Topic(
        _AMD,
        "on that host: rocm-smi; dmesg -T | grep -i amdgpu   # AMD_SERIALIZE_KERNEL=3 for one "
        "run names the line",
    ),
    _Topic(
        _NPU,
        "on that host: npu-smi info   # is a process of an earlier run left on an NPU? The plog "
        "of each rank says more",
    ),
    _Topic(
        _GPU_ACCESS,
        "CUDA_LAUNCH_BLOCKING=1 for one run names the line (compute-sanitizer the kernel); on that host: "
        "nvidia-smi; dmesg -T | grep -i xid",
    ),
    _Topic(
        _NO_NAME,
        "getent ahosts $(hostname); cat /etc/hosts   # on each host: does each name lead to an address that "
        "the others reach? GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME choose the interface",
    ),
    _Topic(
        _NO_ROUTE,
        "ip -br address; ip route   # on both hosts: is the address one of a network that both have, and "
        "not of "
        "a bridge? Choose the interface (dask: interface='ib0'; NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME)",
    ),
    _Topic(
        _LOST_CONNECTION, "read the log of the process at the other end first: did it end before?"
    ),
    _Topic(
        _GLOO,
        "export GLOO_SOCKET_IFNAME=NAME   # the interface that the others reach: ip -br address",
    ),
    _Topic(
        _NCCL,
        "run once with NCCL_DEBUG=INFO: its WARN line tells the call that failed, and on which host",
    ),
    _Topic(
        _TPU,
        "see whether another process holds the TPU (lsof /dev/accel* /dev/vfio/*), and that all its hosts "
        "run: gcloud compute tpus tpu-vm describe NAME",
    ),
    _Topic(
        _GPU,
        "on that host: nvidia-smi -L; echo $CUDA_VISIBLE_DEVICES $LOCAL_RANK   # does each process see a GPU "
        "of its own? The driver's version: nvidia-smi",
    ),
)


def advice_by_words(message: str) -> str:
    """Return what to look at first, by the things that the message names; "" if it names none of them."""
    pieces = [_OTHERS_FAILED] if _OTHER_RANKS.search(message) else [*_named_things(message)]
    prose = without_names(message)
    topics = [topic for topic in _TOPICS if topic.words.search(prose)]
    if any(topic.words is _AMD for topic in topics):  # nvidia-smi shows nothing there
        topics = [topic for topic in topics if topic.words not in (_GPU_ACCESS, _GPU)]
    pieces += [topic.advice for topic in topics]
    if port := _PORT.search(message):
        pieces = [
            advice.replace("ss -ltnp ", f"ss -ltnp 'sport = :{port['port']}' ") for advice in pieces
        ]
    if _MEETING.search(message) and _LATE.search(message):
        pieces.append(
            "count the processes that were started against WORLD_SIZE (torchrun on every host, with one "
            "--nnodes, one endpoint: HOST:PORT of the first host), and read the log of rank 0, which serves "
            "the meeting"
        )
    return "; ".join(pieces[:MAX_ADVICE]) or named_checks(message)


def _named_things(message: str) -> Iterator[str]:
    """Yield what to do about each thing that the message calls by its name."""
    if held := _HELD_BY.search(message):
        pid = held["pid"]
        yield f"ps -fp {pid}   # it holds what is wanted: end it if it is left over (kill {pid})"
    elif (device := _DEVICE_FILE.search(message)) and "/dev/shm" not in device["path"]:
        yield f"lsof {device['path']}; ls -l {device['path']}   # on that host: who holds it, who may use it?"
    if check := _CHECK.search(message):
        yield (
            f"the library compared {check['check'].strip()} and got {check['one']} against "
            f"{check['two']}: look at what this call was given on that worker (an empty part of the "
            "data, a column or label that is missing)"
        )
    if pod := _POD.search(message):
        name = pod["pod"] or pod["pod2"]
        yield f"kubectl describe pod {name}; kubectl logs {name} --previous   # its events, and its own words"
    if missing := _NOT_INSTALLED.search(message):
        name = missing["name"] or missing["name2"] or missing["name3"]
        yield (
            f"install {name} on every host, in the environment that runs (which {name}; pip show {name}), or "
            "choose a backend or launcher that is there"
        )
    if library := _LIBRARY.search(message):
        name = library["library"]
        yield (
            f"ldconfig -p | grep {name}; find / -name '{name}*' 2>/dev/null   # on that host, in its "
            "container; then its folder into LD_LIBRARY_PATH (libcuda.so comes with the driver: on WSL "
            "it is in /usr/lib/wsl/lib)"
        )
    if variable := _VARIABLE.search(message):
        launcher = "srun" if variable["name"].startswith("SLURM") else "a launcher that sets it"
        yield f"start it with {launcher}: {variable['name']} is not in its environment"
    if (address := _ADDRESS.search(message)) and _CONNECTING.search(message):
        host = address["host"] or address["host2"] or address["host3"]
        port = address["port"] or address["port2"] or address["port3"]
        if host.startswith("127."):
            yield (
                "getent ahosts $(hostname)   # on each host: where it shows 127.x, take the name off that "
                "line of /etc/hosts, or export GLOO_SOCKET_IFNAME=NAME of the interface that the others reach"
            )
        else:
            yield f"from this host: nc -vz {host} {port}; read the log of the process on {host}"
    if rank := _RANK.search(message):
        named = rank["rank"] or rank["rank2"] or rank["rank3"]
        yield f"read the log of rank {named}, which it names"
    elif member := _MEMBER.search(message):
        yield f"read the log of {member['name']}, which it names: did it end before?"
