"""Known messages of assertions in kernels on a GPU, and of the error of CUDA that follows them."""

from __future__ import annotations

from itertools import starmap

from allaboard.analysis.log_messages import KnownMessage

LATE_KERNEL = "that the line of the traceback is at fault: kernels run later than they are launched"
_INDEX_FIX = (
    "CUDA_LAUNCH_BLOCKING=1 shows the line that launched it; look for labels and token ids beyond "
    "the number of classes or the vocabulary"
)
_VALUE_FIX = (
    "CUDA_LAUNCH_BLOCKING=1 shows the line that launched it; before it: torch.isfinite(x).all(), x.min(), "
    "x.max()"
)
ASSERTION_WORDS = ": a kernel on the GPU refused it ("
"""Between what a failed assertion means and the assertion itself."""
_ASSERTIONS = (
    (
        r"(?:src|add)Index < \w+DimSize",
        "an index is not below the number of rows of its table (an embedding, index_select)",
        _INDEX_FIX,
        "Indexing.cu:1515: indexSelectSmallIndex",
        "srcIndex < srcSelectDimSize",
    ),
    (
        r"(?:t|cur_target|target\w*) >= 0 && \w+ < \w*n_classes",
        "a label is not below the number of classes",
        _INDEX_FIX,
        "Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d",
        "t >= 0 && t < n_classes",
    ),
    (
        r'[^`\n]{1,100}"[^"`\n]{0,40}index out of bounds"',
        "an index is out of range of the tensor that it selects from",
        _INDEX_FIX,
        "ScatterGatherKernel.cu:144: operator()",
        'idx_dim >= 0 && idx_dim < index_size && "index out of bounds"',
    ),
    (
        r"input_val >= zero && input_val <= one",
        "binary_cross_entropy was given a value outside of 0 to 1 (no sigmoid, or nan)",
        _VALUE_FIX,
        "Loss.cu:94: operator()",
        "input_val >= zero && input_val <= one",
    ),
    (
        r"[^`\n]{0,60}probability tensor contains[^`\n]{0,60}|cumdist\[size - 1\] > [^`\n]{1,40}",
        "torch.multinomial was given probabilities that are inf, nan, below 0 or all 0",
        _VALUE_FIX,
        "MultinomialKernel.cu:112: binarySearchForMultinomial",
        "cumdist[size - 1] > static_cast<scalar_t>(0)",
    ),
    (
        r"[^`\n]{1,120}",
        "a value is wrong, mostly an index that is out of range",
        _INDEX_FIX,
        "Reduce.cuh:12: reduce_kernel",
        "n > 0",
    ),
)
"""Assertions of PyTorch's kernels: a pattern, what it means, what to do, and a place and text as examples."""


def _kernel_assertion(
    assertion: str, meaning: str, fix: str, place: str, example: str
) -> KnownMessage:
    """Return the message of an assertion in a kernel; the first row that matches one counts."""
    earlier = [row[0] for row in _ASSERTIONS]
    earlier_patterns = "|".join(earlier[: earlier.index(assertion)])
    return KnownMessage(
        key="` failed",
        pattern=r"(?P<file>[\w-]{1,80}\.cuh?):\d+: (?P<kernel>[^\n]{0,300}?): block: "
        r"\[[^\n]{0,80}?Assertion `"
        + (f"(?!(?:{earlier_patterns})`)" if earlier_patterns else "")
        + rf"(?P<what>{assertion})` failed",
        rule="LOG011",
        says=f"{meaning}{ASSERTION_WORDS}{{what}}; {{kernel}}, {{file}})",
        fix=fix,
        proves_not=LATE_KERNEL,
        sample=f"/pytorch/aten/src/ATen/native/cuda/{place}: block: [41,0,0], thread: [92,0,0] Assertion "
        f"`{example}` failed.",
        source="its wording from the source of PyTorch 1.0 to 2.13 (CUDA_KERNEL_ASSERT); the first was "
        "recorded with 2.11",
    )


DEVICE_ASSERTION = KnownMessage(
    key="CUDA error: device-side assert triggered",
    pattern=r"CUDA error: device-side assert triggered",
    rule="LOG006",
    says="an assertion failed in a kernel on the GPU, mostly an index out of range",
    fix=_INDEX_FIX,
    explains=("LOG011",),
    proves_not=LATE_KERNEL,
    sample="[rank6]: RuntimeError: CUDA error: device-side assert triggered",
    source="recorded with PyTorch 2.11 (AcceleratorError) on one H200",
)
KERNEL_ASSERTIONS = tuple(starmap(_kernel_assertion, _ASSERTIONS))
