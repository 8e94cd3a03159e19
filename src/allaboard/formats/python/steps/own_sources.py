"""Where a script has values that differ between processes, and the calls by which these exchange them."""

from __future__ import annotations

import ast
import re
from functools import cached_property

from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Function, Script

_AGREES = re.compile(
    r"reduce|gather|broadcast|bcast|agree|any_rank|all_ranks|(?<!no_)sync(?!_gradients|_batch)"
    r"|check_trigger",
    re.I,
)
"""Matches names of calls by which ranks may agree on what one of them saw."""
_MEETS_ONLY = re.compile(r"barrier|(?:cuda|npu|xpu|device)\.synchronize", re.I)
"""Matches calls that carry no value from one rank to another."""
_CLOCKS = re.compile(
    r"time\.(?:time|perf_counter|monotonic)(?:_ns)?|datetime(?:\.datetime)?\.(?:utc)?now"
)
_CHANCE = re.compile(
    r"(?:random|numpy\.random)\.(?:random|rand|randn|randint|choice|uniform|normal|binomial|randrange|gauss)"
    r"|torch\.(?:rand|randn|randint|bernoulli)"
)
_MEMORY = re.compile(r"torch\.cuda\.(?:max_)?mem\w+|psutil\.\w*memory\w*")
_SEEDS = re.compile(r"seed|determinis|reproduc", re.I)
_SPLITS = ("array_split", "tensor_split", "split", "chunk")


class OwnSources:
    """The clocks, random numbers, signals and shares of one script, and what its processes exchange."""

    def __init__(self, script: Script) -> None:
        self._script = script

    def kind_of_call(self, name: str) -> str:
        """Return what a call of a library reads that only this process has: ``clock``, ``memory`` or
        ``chance``; "" for none."""
        if _CLOCKS.fullmatch(name):
            return "clock"
        if _MEMORY.fullmatch(name):
            return "memory"
        return "chance" if _CHANCE.fullmatch(name) and self._has_own_chance else ""

    @cached_property
    def exchanged(self) -> frozenset[tuple[Function | None, str]]:
        """Variables that a call exchanges with the other ranks, in place or for its result."""
        exchanged: set[tuple[Function | None, str]] = set()
        for _, call in self._script.calls:
            if not carries_agreement(ast.unparse(call.func)):
                continue
            receiver = [call.func.value] if isinstance(call.func, ast.Attribute) else []
            for part in (*call.args, *(k.value for k in call.keywords), *receiver):
                for n in ast.walk(part):
                    if isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) != "self":
                        is_name = isinstance(n, ast.Name)
                        scope = self._script.enclosing_function(call) if is_name else None
                        exchanged.add((scope, ast.unparse(n)))
        return frozenset(exchanged)

    @cached_property
    def signal_handlers(self) -> frozenset[str]:
        """Functions that run when the process gets a signal."""
        calls = self._script.calls_of("signal.signal")
        return frozenset(
            full_name(c.args[1], {}).rpartition(".")[2] for c in calls if len(c.args) > 1
        )

    @cached_property
    def data_classes(self) -> frozenset[str]:
        """Classes of the script that give out samples."""
        return frozenset(
            n.name
            for n in self._script.parents
            if isinstance(n, ast.ClassDef)
            and any(re.search(r"Dataset|Sampler|Loader", ast.unparse(b)) for b in n.bases)
        )

    @cached_property
    def _has_own_chance(self) -> bool:
        """True if no call gives the random numbers of all ranks one seed."""
        seeds = [
            c
            for _, c in self._script.calls
            if _SEEDS.search(ast.unparse(c.func).rpartition(".")[2]) and c.args
        ]
        imports_seed = any(_SEEDS.search(full) for full in self._script.names.values())
        if not seeds:
            return not imports_seed
        return any(self._has_rank(a) for c in seeds for a in c.args)

    def _has_rank(self, node: ast.expr) -> bool:
        made_of = ast.walk(resolve(self._script, node))
        parts = [n for n in made_of if isinstance(n, (ast.Name, ast.Attribute, ast.Call))]
        return any(self._script.ranks.rank_kind(n) == "number" for n in parts)


def carries_agreement(function: str) -> bool:
    """Return True if ranks may agree on a value by a call of this text."""
    is_metric = function.endswith(".compute")  # of torchmetrics
    agrees = is_metric or _AGREES.search(function.rpartition(".")[2]) is not None
    return agrees and not _MEETS_ONLY.search(function)


def is_shard(script: Script, node: ast.Subscript) -> bool:
    """Return True for `files[rank::world]` and `array_split(files, world)[rank]`."""
    if isinstance(node.slice, ast.Slice):
        first = node.slice.lower
        return first is not None and script.ranks.rank_kind(first) == "number"
    value = node.value
    is_split = isinstance(value, ast.Call) and (
        ast.unparse(value.func).rpartition(".")[2] in _SPLITS
    )
    return is_split and script.ranks.rank_kind(node.slice) == "number"
