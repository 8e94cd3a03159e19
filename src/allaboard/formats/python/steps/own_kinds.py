"""The kinds of values that each process has for itself, and the names by which scripts tell them."""

from __future__ import annotations

import ast
import re

AGREED = "agreed"
"""The kind of a value that the ranks have reduced or exchanged."""
MAX_DEPTH = 30
"""Variables and expressions that are followed into each other."""
LOADER = re.compile(
    r"loader|dataset|\bdata\b|\bdl\b|train_?data|batches|_iter\b|(?:train|val|test)_ds\b", re.I
)
"""Matches what a loop over batches runs over."""
DIVIDES = re.compile(r"loader|dataset|data|sampler|batches|shard|split", re.I)
"""Matches names of calls that give a rank its share if they get its number."""
STEPS = ("training_step", "validation_step", "test_step", "train_step")
"""Functions that get one batch, as their first argument."""
SIZES = re.compile(
    r"len|size|numel|nelement|dim|isinstance|type|range|hasattr|callable|id|shape|dtype|device|ndim|is_cuda"
    r"|batch_size|epoch|keys|print"
)
"""Calls and attributes of a batch that are the same on all ranks."""
SAME_VALUE = re.compile(
    r"to|cuda|cpu|detach|clone|squeeze|unsqueeze|view|reshape|enumerate|zip|tqdm|iter|next|items|values|get"
    r"|list|tuple|dict|float|half|bfloat16|to_device|send_to_device"
)
"""Calls that return their argument, or parts of it."""
EVALUATES = re.compile(r"validat|eval|test", re.I)
"""Matches names of functions that compute a metric."""
MEASURE = re.compile(
    r"loss|acc|err|score|metric|nll|perplexity|ppl|auc|f1|iou|reward|avg|mean|value|stop|\bnorm",
    re.I,
)
"""Matches names of what is measured on a batch."""
COUNTER = re.compile(
    r"(?:^|[.\[\]'\"])(?:(?:global|local|train|training|total|opt\w*|update|cur\w*|max|num|n|completed|static"
    r"|start|resume)_)*(?:steps?|epochs?|iter|iters|iterations?|idx)(?:'\]|\Z)"
)
"""Matches names of counters, which go on alike on all ranks."""
ENTERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def merged_kind(kinds: list[str]) -> str:
    """Return the kind of what is made of several values: once the ranks have agreed, it is agreed."""
    return AGREED if AGREED in kinds else next(filter(None, kinds), "")


def kind_of_number(kind: str) -> str:
    """Return the kind of what is computed of a value."""
    return "loss" if kind == "batch" else "" if kind == "share" else kind


def kind_of_part(kind: str, name: str) -> str:
    """Return the kind of a named part of a value: not all that a step returns is computed of the batch."""
    return "" if kind == "loss" and not MEASURE.search(name) else kind
