"""Causes of exceptions that CUDA, HIP and NCCL report through a framework.

The wording of a failed assertion, of an illegal address, of a GPU that two ranks use and of a missing
interface is that of runs on one H200 with PyTorch 2.11 and NCCL 2.28.9; the rest is from the libraries'
sources.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from allaboard.facts.outcome import Retry

_GPU_FIX = "on that host: nvidia-smi; dmesg -T | grep -i xid; then run once without that node"
_GPU_CODES = (
    r"HARDWARE_STACK_ERROR|ILLEGAL_INSTRUCTION|ILLEGAL_ADDRESS"
    r"|MISALIGNED_ADDRESS|INVALID_ADDRESS_SPACE|INVALID_PC|LAUNCH_FAILED|LAUNCH_TIMEOUT|SYSTEM_NOT_READY"
    r"|DEVICE_UNAVAILABLE|EXTERNAL_DEVICE|CONTAINED|MPS_\w+|UNKNOWN"
)
_GPU_WORDS = (
    r"an illegal instruction was encountered|unspecified launch failure|misaligned address"
    r"|hardware stack error|invalid program counter"
    r"|the launch timed out[^\n]{0,40}"
)

_LATE = (
    "the kernel may have begun before the line that raised: CUDA_LAUNCH_BLOCKING=1 shows the line that "
    "launched it"
)


@dataclass(frozen=True, kw_only=True)
class Cause:
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
    retry: Retry = Retry.HERE
    """What to do with a job that it ended."""
    together: str = ""
    """The cause after the names of several members that raised it; "" if it is the same as for one."""
    fix_together: str = ""
    """What to do next then."""

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """Return the compiled pattern."""
        return re.compile(self.pattern, re.DOTALL)


GPU_ERROR_CAUSES = (
    Cause(
        pattern=r"(?P<what>[Gg]raph compile failed|syn[A-Z]\w{2,40} failed(?: for node: \w{1,60})?)"
        r"[^\n]{0,80}?synStatus[ =]{1,3}(?:synStatus )?(?P<code>\d{1,3}) \[(?P<why>[^\]\n]{1,60})\]",
        says="failed in the software of its Gaudi accelerator: {what} (synStatus {code}, {why})",
        fix="grep -rihE '\\[(error|critical)' $HABANA_LOGS | sort | head   # on that host, by default in "
        "/var/log/habana_logs: the first lines name the operation; hl-smi: is the driver of the same version "
        "as habana-torch-plugin?",
    ),
    Cause(
        pattern=r"device-side assert triggered|cudaErrorAssert|CUDA_ERROR_ASSERT",
        says="ran a kernel in which an assertion failed, mostly for an index out of range",
        fix=f"{_LATE}; compare the indices there (labels, token ids) with the number of classes or the size "
        "of the vocabulary: on the CPU the same batch raises with the index",
    ),
    Cause(
        pattern=r"an illegal memory access was encountered|CUDA_ERROR_ILLEGAL_ADDRESS"
        r"|cudaErrorIllegalAddress",
        says="ran a kernel that used an address outside of its memory",
        fix=f"{_LATE}; compute-sanitizer python SCRIPT names the kernel and the address; if one GPU alone "
        "reports it: dmesg -T | grep -i xid",
    ),
    Cause(
        pattern=r"Duplicate GPU detected ?: rank (?P<rank>\d+ and rank \d+) both on CUDA device "
        r"(?P<device>[0-9a-f]+)",
        says="rank {rank} use one GPU (NCCL names it {device}, by its PCI address)",
        fix="torch.cuda.set_device(int(os.environ['LOCAL_RANK']))   # before init_process_group, a GPU of "
        "its own for each rank (or by CUDA_VISIBLE_DEVICES); no more processes on a host than it has GPUs: "
        "nvidia-smi -L",
        own=False,
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"Bootstrap ?: no socket interface found",
        says="found no network interface that NCCL may use: NCCL_SOCKET_IFNAME names none that its host has",
        fix="on that host: echo $NCCL_SOCKET_IFNAME; ip -br address   # name one that is up and that the "
        "other hosts reach, or unset it: NCCL then chooses one",
        retry=Retry.NEVER,
    ),
    Cause(
        pattern=r"CUDA_ERROR_INVALID_DEVICE|invalid device ordinal|no supported devices found for platform"
        r"|CUDA_ERROR_NO_DEVICE|no CUDA-capable device is detected",
        says="asked for a GPU that it does not see",
        fix="on that host: nvidia-smi -L; echo $CUDA_VISIBLE_DEVICES   # start no more tasks on a node than "
        "it has GPUs; with JAX and one visible GPU a task: initialize(local_device_ids=[0])",
    ),
    Cause(
        # The only codes of CUDA that leave no reading but a broken device: cudaErrorECCUncorrectable (214)
        # and cudaErrorNvlinkUncorrectable (220). An illegal address may be a mistake in a kernel.
        pattern=r"(?P<what>CUDA_ERROR_(?:ECC|NVLINK)_UNCORRECTABLE\b|(?i:cuda|hip) (?:runtime )?"
        r"(?:error|failure)[^\n]{0,40}uncorrectable (?:ECC|NVLink) error[^\n]{0,60}"
        r"|cudaError(?:ECC|Nvlink)Uncorrectable\b)",
        says="met a fault of its GPU or of the GPU's link: {what}",
        fix=_GPU_FIX,
        retry=Retry.ELSEWHERE,
    ),
    Cause(
        pattern=rf"(?P<what>CUDA_ERROR_(?:{_GPU_CODES})\b|(?i:cuda|hip) (?:runtime "
        rf")?(?:error|failure)[^\n]{{0,40}}"
        rf"(?:{_GPU_WORDS}))",
        says="met a fault of its GPU or of the GPU's link: {what}",
        fix=_GPU_FIX,
    ),
    Cause(
        pattern=r"(?:NCCL [Ee]rror|Error invoking NCCL|NCCL operation [^\n]{0,80}failed"
        r"|nccl[A-Z]\w+ failed)[^\n]{0,160}?(?P<what>unhandled (?:system|cuda) error|internal error"
        r"|invalid (?:usage|argument)|unknown error)",
        says="failed in NCCL: {what}",
        fix="run once with NCCL_DEBUG=INFO: its lines before the error name the device or the host",
        vague=True,
    ),
)
