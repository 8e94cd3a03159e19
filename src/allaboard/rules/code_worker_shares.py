"""An IterableDataset is divided among the ranks, and not among the workers of their loaders."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_LOADER = "torch.utils.data.DataLoader"
_ITERABLE = ("IterableDataset", "torch.utils.data.IterableDataset")
_BY_RANK = re.compile(
    r"islice\(.*\brank\b.*,.*\bworld|%\s*[\w.]*world\w*\s*==\s*[\w.]*rank|%\s*[\w.]*rank\b"
    r"|\[\s*[\w.]*rank\s*::\s*[\w.]*world",
    re.I,
)
"""Matches what lets a rank take each so-manyth item."""


def _same_share(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "IterableDataset" not in source or "get_worker_info" in source or facts.is_piece:
        return
    script = read_script(facts)
    for call in script.calls_of(_LOADER):
        count = call_argument(call, "num_workers", 5)
        number = count.value if isinstance(count, ast.Constant) else None
        if type(number) is not int or number < 2 or call_argument(call, "worker_init_fn"):
            continue
        dataset = _dataset_class(script, call.args[0] if call.args else None)
        methods = dataset.body if dataset is not None else []
        reads = [m for m in methods if isinstance(m, ast.FunctionDef) and m.name == "__iter__"]
        share = _share_by_rank(reads[0]) if reads else None
        if share is None:
            continue
        yield Claim(
            summary=f"each of the {number} workers of a rank's loader reads the whole share of the rank: the "
            f"rank trains on each item {number} times",
            evidence=(script.evidence_for(call), script.evidence_for(share)),
            fix="info = torch.utils.data.get_worker_info()   # share number rank * info.num_workers + "
            "info.id of world_size * info.num_workers",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(share),
        )
        return


def _share_by_rank(method: ast.FunctionDef) -> ast.stmt | None:
    """Return the statement that takes the rank's share."""
    for statement in ast.walk(method):
        if isinstance(statement, (ast.For, ast.If, ast.Assign, ast.Return, ast.Expr)):
            head = {ast.For: "iter", ast.If: "test"}.get(type(statement), "value")
            part = getattr(statement, head)
            if part is not None and _BY_RANK.search(ast.unparse(part)):
                return statement
    return None


def _dataset_class(script: Script, given: ast.expr | None) -> ast.ClassDef | None:
    """Return the class of the IterableDataset that a loader gets; None if it is another dataset."""
    value = given
    if isinstance(given, ast.Name):
        values = script.ranks.bound_values(given)
        value = values[0] if len(values) == 1 else None
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        return None
    dataset = script.classes.get(value.func.id)
    bases = [script.call_name(b) for b in dataset.bases] if dataset is not None else []
    return dataset if any(b in _ITERABLE for b in bases) else None


_STREAM = """import itertools
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset
dist.init_process_group("nccl")
class Lines(IterableDataset):
    def __iter__(self):
        for line in itertools.islice(open("a"), rank, None, world_size):
            yield line
loader = DataLoader(Lines(), batch_size=8, num_workers=4)
"""

RULES = {
    "code113_workers_share_nothing": script_rule(
        page="""The workers of a rank's DataLoader all read the share of that rank.

## Why it matters
Each worker process of a DataLoader has a copy of an IterableDataset and iterates over all of it. A dataset
that divides itself by the rank alone gives every worker the same items: with 8 workers, a rank trains on
each item eight times in an epoch.

## What to do
Divide by rank and worker: `get_worker_info()` has the worker's number and their count.
""",
        check=_same_share,
        fires_on={
            "a stream divided by the rank, read by four workers": (
                _STREAM,
                "each of the 4 workers of a rank's loader reads the whole share of the rank: the rank trains "
                "on each item 4 times",
            )
        },
        silent_on={
            "the loader reads in its own process": _STREAM.replace(
                "num_workers=4", "num_workers=0"
            ),
            "a single worker process": _STREAM.replace("num_workers=4", "num_workers=1"),
            "the dataset asks which worker it is in": _STREAM.replace(
                "        for line", "        info = get_worker_info()\n        for line"
            ),
            "the loader tells its workers apart": _STREAM.replace(
                "num_workers=4", "num_workers=4, worker_init_fn=split"
            ),
            "a dataset with an index": _STREAM.replace("(IterableDataset)", "(Dataset)"),
        },
    ),
}
