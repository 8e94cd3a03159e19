"""Messages of other vendors' accelerators and collectives: AMD's ROCm, Huawei's HCCL, Intel's oneCCL."""

from __future__ import annotations

from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Severity, Testimony

_AMD_FIX = "on that host: rocm-smi --showrasinfo all; dmesg -T | grep -i amdgpu; then once without that GPU"
_AMD_SOURCE = "its wording from users' reports of ROCm 4 to 7"
_HCCL_SOURCE = "its wording from users' reports of CANN 7 to 8.3"
_CCL_SOURCE = "its wording from users' reports of oneCCL 2021"


def _npu_waited(key: str, pattern: str, sample: str) -> KnownMessage:
    """Return the message of an NPU that waited until its timeout, by its wording."""
    return KnownMessage(
        key=key,
        pattern=pattern,
        rule="LOG001",
        says="an NPU waited until its timeout for what did not come, mostly from another rank that had "
        "failed or was late ({code}: {what})",
        fix="allaboard diagnose LOG... with the logs of all ranks: which of them writes another error, or "
        "none? CANN's own logs, on each host: grep -rlE 'ERROR.*HCCL' ~/ascend/log; if a rank only came "
        "late: export HCCL_EXEC_TIMEOUT=3600 HCCL_CONNECT_TIMEOUT=1800 on all",
        proves_not="which rank: those that write it are victims",
        awaits=True,
        sample=sample,
        source=_HCCL_SOURCE,
    )


_NPU_CODE_TIMEOUT = _npu_waited(
    "timeout",
    r"\b(?P<code>E[A-Z]\d{4}):? +(?:\[PID: \d+\] )?(?:\d{4}-\d\d-\d\d-[\d:.]{8,20} +)?"
    r"(?P<what>[^\n:.]{0,100}?\btimeout\b|[^\n]{0,160}?\btask timeout\b)",
    "EE1002: 2024-09-05-16:20:00.041.231 Stream synchronize timeout. rtDeviceSynchronize execute "
    "failed, reason=[stream sync timeout]",
)
"""With one of CANN's codes."""
_NPU_CALL_TIMEOUT = _npu_waited(
    " timeout]",
    r"(?P<code>rt\w{3,60}) execute failed, reason=\[(?P<what>(?:task|stream sync) timeout)\]",
    "rtDeviceSynchronize execute failed, reason=[task timeout][FUNC:FuncErrorReason]",
)
"""With a function of the runtime in the place of a code."""
MESSAGES = (
    KnownMessage(
        key="Unable to load NCCL library",
        pattern=r"Unable to load NCCL library",
        rule="LOG013",
        says="XLA found no NCCL library on this host, without which GPUs cannot exchange anything",
        fix="python -c 'import nvidia.nccl; print(nvidia.nccl.__path__)'; ldconfig -p | grep nccl   # on "
        "that host: pip install nvidia-nccl-cu12 (JAX: pip install -U 'jax[cuda12]'), or its folder in "
        "LD_LIBRARY_PATH",
        explains=("LOG010", "LOG012", "EXIT002"),
        sample="NCCL operation ncclGetUniqueId(&id) failed: Unable to load NCCL library. Multi-GPU "
        "collectives will not work.",
        source="its wording from the source of XLA, in JAX 0.4 to 0.10 and TensorFlow 2.12 to 2.21",
    ),
    KnownMessage(
        key="Memory access fault by GPU node-",
        pattern=r"Memory access fault by GPU node-(?P<gpu>\d+)[^\n]{0,200}?Reason: (?P<why>[^\n.]{1,80})",
        rule="LOG006",
        says="a kernel on GPU node {gpu} (AMD) wrote or read where it must not: {why}",
        fix="AMD_SERIALIZE_KERNEL=3 HSA_ENABLE_DEBUG=1 for one run shows the line that launched it; "
        + _AMD_FIX,
        proves_not="that the GPU is broken: indices beyond a table do that, too",
        explains=("EXIT001",),
        sample="Memory access fault by GPU node-3 (Agent handle: 0x5a5c587a51c0) on address 0x709843600000. "
        "Reason: Write access to a read-only page.",
        source=_AMD_SOURCE,
    ),
    KnownMessage(
        key="aborting with error : HSA_STATUS_ERROR",
        pattern=r"Queue 0x\w+ aborting with error : (?P<code>HSA_STATUS_ERROR\w*): (?P<why>[^\n]{1,120}?) "
        r"code: (?P<number>0x\w+)",
        rule="LOG006",
        says="a queue of an AMD GPU was aborted: {code} ({number})",
        fix="AMD_LOG_LEVEL=3 AMD_SERIALIZE_KERNEL=3 for one run shows the kernel; " + _AMD_FIX,
        proves_not="that the GPU is broken: a kernel that reads beyond its buffer does that, too",
        explains=("EXIT001",),
        sample=":0:rocdevice.cpp :3586: 74339723890 us:  Callback: Queue 0x7f78cb400000 aborting with error "
        ": HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016",
        source=_AMD_SOURCE,
    ),
    KnownMessage(
        key="HW Exception by GPU node-",
        pattern=r"HW Exception by GPU node-(?P<gpu>\d+)[^\n]{0,100}?reason ?: ?(?P<why>[^\n]{1,80})",
        rule="LOG006",
        says="GPU node {gpu} (AMD) reports a hardware exception: {why}",
        fix=_AMD_FIX,
        explains=("EXIT001",),
        sample="HW Exception by GPU node-2 (Agent handle: 0x55d4) reason :GPU Hang",
        source=_AMD_SOURCE,
    ),
    KnownMessage(
        key="amdgpu ",
        pattern=r"amdgpu (?P<bus>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d): (?:amdgpu: )?(?P<what>GPU reset "
        r"begin"
        r"|uncorrectable hardware error[^\n]{0,60}|[^\n]{0,40}ring \S+ timeout|GPU reset\(\d+\) failed"
        r"|[^\n]{0,20}page fault \([^\n]{0,60})",
        rule="LOG006",
        says="the kernel reports that the AMD GPU {bus} failed or hung: {what}",
        fix=_AMD_FIX,
        proves_not="that the GPU is broken: a kernel of the program that never ends is reset, too",
        explains=("EXIT001",),
        sample="[ 6662.667089] amdgpu 0000:0b:00.0: amdgpu: GPU reset begin!",
        source="its wording from the source of Linux 5.4 to 6.12 (drivers/gpu/drm/amd)",
    ),
    KnownMessage(
        key="port issue: { status: failed",
        pattern=r"host: (?P<host>[\w.-]+), rank: (?P<rank>\d+), local_port_id: \{(?P<port>[^}\n]{1,40})"
        r"\}, port issue: \{ status: failed, details: (?P<why>[^}\n]{1,80}?) \}",
        rule="LOG005",
        says="a port of the link between GPUs (Xe Link) is down on {host}, at the GPU of rank {rank}: {why}",
        fix="on {host}: xpu-smi topology -m; xpu-smi diag -d 0 -l 1; reset the GPUs or reboot it; until then "
        "CCL_TOPO_FABRIC_VERTEX_CONNECTION_CHECK=0 goes without these ports",
        severity=Severity.WARNING,
        proves_not="that the job fails of it: oneCCL may take another way",
        sample="2025:04:02-03:30:40:(5119976) |CCL_WARN| host: n1.lab, rank: 0, local_port_id: { 65559 0 "
        "1 }, port issue: { status: failed, details: training timeout }",
        source="its wording from users' reports of oneCCL 2021.15",
    ),
    KnownMessage(
        key="Getting socket times out",
        pattern=r"Getting socket times out",
        rule="LOG001",
        says="a rank waited for another NPU's rank, which did not connect or send, until HCCL's timeout",
        fix="read the log of the rank that does not write this: did it fail, or come later? If it only came "
        "late: "
        "export HCCL_CONNECT_TIMEOUT=1800 on all; the link: hccn_tool -i 0 -link -g; hccn_tool -i 0 -tls -g",
        proves_not="which rank: those that write it are victims",
        awaits=True,
        sample="EI0006: 2024-08-05-18:15:21.270.506 Getting socket times out. Reason: Remote Rank did not "
        "send the data in time.",
        source=_HCCL_SOURCE,
    ),
    _NPU_CODE_TIMEOUT,
    KnownMessage(
        key="Maybe the last training process is running",
        pattern=r"Failed to initialize the HCCP process\. Reason: Maybe the last training process is running",
        rule="RES005",
        says="the NPUs are still held by a process of an earlier run",
        fix="npu-smi info   # which process is on them? pgrep -af python; end it, wait 10 s, and start again",
        sample="EJ0001: 2024-05-21-11:57:54.167.645 Failed to initialize the HCCP process. Reason: Maybe the "
        "last training process is running.",
        source=_HCCL_SOURCE,
    ),
    KnownMessage(
        key="fi_getinfo error: ret -61",
        pattern=r"fi_getinfo error: ret -61, providers 0",
        rule="LOG005",
        says="oneCCL found no network: libfabric has no provider here",
        fix="fi_info   # which providers are there? source oneCCL's and Intel MPI's setvars.sh, or export "
        "FI_PROVIDER_PATH=$I_MPI_ROOT/opt/mpi/libfabric/lib/prov FI_PROVIDER=tcp",
        explains=("LOG010",),
        sample="2024:08:21-10:24:26:( 4456) |CCL_ERROR| atl_ofi_helper.cpp:867 atl_ofi_get_prov_list: "
        "fi_getinfo error: ret -61, providers 0",
        source=_CCL_SOURCE,
    ),
    KnownMessage(
        key="error while creating worker thread",
        pattern=r"error while creating worker thread #\d+ pthread_create returns 22",
        rule="LOG010",
        says="oneCCL could not pin its worker threads: they are to run on CPUs that the process may not use",
        fix="taskset -cp $$   # the CPUs of this shell; then export CCL_WORKER_AFFINITY with some of them, "
        "or unset it and I_MPI_PIN_DOMAIN; a container needs the CPUs that the mask names",
        sample="2023:11:28-16:35:45:(35980) |CCL_ERROR| base_thread.cpp:36 start: error while creating "
        "worker thread #0 pthread_create returns 22",
        source=_CCL_SOURCE,
    ),
)
_CCL_ERROR = KnownMessage(
    key="|CCL_ERROR|",
    pattern=r"\|CCL_ERROR\| (?P<place>[\w.-]+:\d+) (?P<what>[^\n]{1,160})",
    rule="LOG010",
    says="oneCCL failed: {what}",
    fix="CCL_LOG_LEVEL=info for one run: its lines before this one tell what it tried",
    sample="2023:11:28-16:35:45:(35980) |CCL_ERROR| exec.cpp:134 start_workers: condition failed",
    source=_CCL_SOURCE,
)
"""Any other error of oneCCL: the first says most."""

_CANN_ERROR = KnownMessage(
    key=" Reason: ",
    pattern=r"\b(?P<code>E[A-Z]\d{4}): (?:\[PID: \d+\] )?\d{4}-\d\d-\d\d-[\d:.]{8,20}"
    r" +(?P<what>[A-Z][^\n]{8,160}?)\. Reason: (?P<why>[^\n]{1,160})",
    rule="LOG010",
    says="the NPU's software failed ({code}): {what}: {why}",
    fix="read the lines `Solution:` after it; on that host: npu-smi info; the logs of CANN: ls ~/ascend/log",
    sample="EI0002: 2024-07-03-11:28:40.450.757 The wait execution of the Notify register times out. Reason: "
    "The Notify register has not received the Notify record from remote rank",
    source=_HCCL_SOURCE,
)
"""Any other error code of Huawei's CANN, which come with a reason and a solution."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    heard = find_known_messages(exhibit, MESSAGES)
    if not any(h.rule in ("LOG005", "LOG010") for h in heard):
        heard = (*heard, *find_known_messages(exhibit, (_CCL_ERROR,))[:1])
    for message in (_NPU_CALL_TIMEOUT, _CANN_ERROR):  # the first says most
        heard = heard or find_known_messages(exhibit, (message,))[:1]
    heard = _without_repeats(heard)
    return Testimony(heard=heard) if heard else None


def _without_repeats(heard: tuple[Heard, ...]) -> tuple[Heard, ...]:
    """Return the messages with one for a fault that takes all queues of a GPU, or all GPUs, along."""
    first_fault = next((h for h in heard if h.rule == "LOG006"), None)
    return tuple(h for h in heard if h.rule != "LOG006" or h is first_fault)


READER = LogReader(read=read_log)
