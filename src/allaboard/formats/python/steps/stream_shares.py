"""Shares of a stream, whose length nobody knows: of `datasets`, dealt out by `split_dataset_by_node`."""

from __future__ import annotations

import ast
import re

from allaboard.formats.python.flow.bindings import bindings_of
from allaboard.formats.python.script_ast import Script, call_argument

_SPLIT = "datasets.distributed.split_dataset_by_node"
_ENDS_ALIKE = re.compile(
    r"max_steps|total_steps|num_steps|steps_per_epoch|\bislice\(|\.take\(|\.repeat\(|\bcycle\("
    r"|StopIteration|stopping_strategy"
)
"""Matches what may end the loops of all ranks after one number of steps."""


def stream_shares(script: Script) -> list[ast.Call]:
    """Return the calls that give each rank its share of a stream, unless the script counts steps."""
    shares = [call for name, call in script.calls if name == _SPLIT and call.args]
    if not shares or script.uses_launching_library or any(map(_ENDS_ALIKE.search, script.lines)):
        return []
    streams = [call for _, call in script.calls if _is_stream(script, call)]
    bindings = bindings_of(script)
    return [
        share
        for share in shares
        if any(bindings.comes_from(share.args[0], stream) for stream in streams)
    ]


def _is_stream(script: Script, call: ast.Call) -> bool:
    name = script.call_name(call.func)
    if name == "datasets.load_dataset":
        streaming = call_argument(call, "streaming")
        return isinstance(streaming, ast.Constant) and streaming.value is True
    return name == "datasets.IterableDataset.from_generator"


def leaves_in_between(loop: ast.For) -> bool:
    """Return True if a loop may end before its items do."""
    return any(isinstance(n, (ast.Break, ast.Return)) for n in ast.walk(loop))
