"""What the message of an exception says, without the sentences that a library adds to every error. Pure.

The wording is that of PyTorch 1.10 to 2.11 (CUDA, HIP and NCCL errors) and of NCCL 2.28's own descriptions.
"""

from __future__ import annotations

from allaboard.late_pattern import compile_late

_BOILERPLATE = compile_late(
    r"Search for [`'\"]?\w+['\"]? in https?://\S+ for more information"
    r"|(?:CUDA|HIP|XPU) kernel errors might be asynchronously reported"
    r"|For debugging consider passing (?:CUDA_LAUNCH_BLOCKING|AMD_SERIALIZE_KERNEL)"
    r"|Compile with [`'\"]?TORCH_USE_\w+_DSA"
    r"|nccl\w+: (?:This usually reflects|A call failed|Call to CUDA|System call|Internal check failed)[^\n]*$"
    r"|Device-side assertion tracking was not enabled by user"
)
"""Lines that are the same whatever has happened; the next step says what of them is of use."""
_TRACE = compile_late(r"\n\s*(?:Exception raised from |frame #\d+: |C\+\+ CapturedTraceback)")
"""Begins the stack of native code below a message."""


def without_boilerplate(message: str) -> str:
    """Return the message's first line, and of the others those that only this failure has."""
    trace = _TRACE.search(message)
    first_line, *others = (message[: trace.start()] if trace else message).split("\n")
    kept = [line for line in others if line.strip() and not _BOILERPLATE.match(line.strip())]
    return "\n".join([first_line, *kept]).replace("Last error:\n", "Last error: ")
