"""What an expression of a TensorFlow script is in the input pipeline: dataset, iterator or batch."""

from __future__ import annotations

import ast
from enum import StrEnum

from allaboard.formats.python.call_parameters import is_method
from allaboard.formats.python.resolution import passed_values, resolve, resolver_of
from allaboard.formats.python.script_ast import Function, Script, call_argument

MAX_DEPTH = 10
"""Variables and calls that are followed into each other."""


class Pipeline(StrEnum):
    """A part of the input pipeline."""

    UNKNOWN = ""
    DATASET = "dataset"
    """A tf.data.Dataset, whole, and the same in every worker."""
    SHARDED_DATASET = "sharded dataset"
    """A tf.data.Dataset from which this worker takes a part of its own."""
    DISTRIBUTED = "distributed dataset"
    DATASET_ITERATOR = "iterator of a dataset"
    DISTRIBUTED_ITERATOR = "iterator of a distributed dataset"
    BATCH = "batch of a dataset"
    DISTRIBUTED_BATCH = "batch of a distributed dataset"


DISTRIBUTE_METHODS = frozenset(
    (
        "experimental_distribute_dataset",
        "distribute_datasets_from_function",
        "experimental_distribute_datasets_from_function",
    )
)
_MAKERS = frozenset(
    (
        *("tensorflow.data.TFRecordDataset", "tensorflow.data.TextLineDataset"),
        "tensorflow.data.FixedLengthRecordDataset",
        "tensorflow.data.experimental.make_csv_dataset",
        "tensorflow.keras.utils.image_dataset_from_directory",
        "tensorflow.keras.preprocessing.image_dataset_from_directory",
        "tensorflow.keras.utils.text_dataset_from_directory",
    )
)
_TRANSFORMATIONS = frozenset(
    (
        *("map", "batch", "shuffle", "repeat", "prefetch", "cache", "filter", "take", "skip"),
        *(
            "with_options",
            "interleave",
            "unbatch",
            "padded_batch",
            "enumerate",
            "apply",
            "flat_map",
        ),
        *("concatenate", "window", "ragged_batch", "snapshot", "rebatch", "take_while"),
    )
)
_OVER = {
    Pipeline.DATASET: Pipeline.BATCH,
    Pipeline.DATASET_ITERATOR: Pipeline.BATCH,
    Pipeline.DISTRIBUTED: Pipeline.DISTRIBUTED_BATCH,
    Pipeline.DISTRIBUTED_ITERATOR: Pipeline.DISTRIBUTED_BATCH,
}
"""What iterating yields."""
_ITERATORS = {
    Pipeline.DATASET: Pipeline.DATASET_ITERATOR,
    Pipeline.DISTRIBUTED: Pipeline.DISTRIBUTED_ITERATOR,
}


def pipeline_part(
    script: Script, node: ast.expr, depth: int = MAX_DEPTH, entered: frozenset[str] = frozenset()
) -> Pipeline:
    """Return what an expression is; UNKNOWN unless the script shows it.

    ``entered`` are the variables that are being followed: one that is assigned from itself ends there.
    """
    if depth <= 0:
        return Pipeline.UNKNOWN
    if isinstance(node, (ast.Name, ast.Attribute)):
        return _variable(script, node, depth, entered)
    if isinstance(node, ast.Call):
        return _call(script, node, depth, entered)
    if isinstance(node, ast.Subscript):  # batch[0] is as much a part of one batch
        part = pipeline_part(script, node.value, depth - 1, entered)
        return part if part in (Pipeline.BATCH, Pipeline.DISTRIBUTED_BATCH) else Pipeline.UNKNOWN
    return Pipeline.UNKNOWN


def loop_source(script: Script, node: ast.Name) -> ast.expr | None:
    """Return what the loop runs over that binds a variable, in the same function; None if none does."""
    for above in script.ancestors(node):
        if isinstance(above, ast.For) and any(
            isinstance(n, ast.Name) and n.id == node.id for n in ast.walk(above.target)
        ):
            return _enumerated(script, above.iter)
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            return None
    return None


def _enumerated(script: Script, node: ast.expr) -> ast.expr:
    """Return what is counted or shown while it is iterated over: of `enumerate(data)`, `data`."""
    if (
        isinstance(node, ast.Call)
        and node.args
        and isinstance(node.func, (ast.Name, ast.Attribute))
    ):
        name = script.call_name(node.func).rpartition(".")[2]
        if name in ("enumerate", "tqdm", "trange"):
            return node.args[0]
    return node


def _variable(
    script: Script, node: ast.Name | ast.Attribute, depth: int, entered: frozenset[str]
) -> Pipeline:
    name = ast.unparse(node)
    if name in entered:
        return Pipeline.UNKNOWN
    entered |= {name}
    over = loop_source(script, node) if isinstance(node, ast.Name) else None
    if over is not None:
        return _OVER.get(pipeline_part(script, over, depth - 1, entered), Pipeline.UNKNOWN)
    values = script.ranks.bound_values(node)
    if values == [None] and isinstance(node, ast.Name):
        values = passed_values(script, node)
    elif not values:
        value = resolve(script, node)
        values = [value] if value is not node else []
    parts = {
        pipeline_part(script, value, depth - 1, entered) if value is not None else Pipeline.UNKNOWN
        for value in values
        if value is not node and not (isinstance(value, ast.Constant) and value.value is None)
    }
    unpacked = _unpacked_from_next(script, name, node, depth, entered)
    if unpacked:
        return unpacked
    if Pipeline.SHARDED_DATASET in parts:
        return Pipeline.SHARDED_DATASET
    # dataset = dataset.map(...) refers to itself.
    if len(values) > 1 and _only_transforms_itself(name, values):
        parts.discard(Pipeline.UNKNOWN)
    return parts.pop() if len(parts) == 1 else Pipeline.UNKNOWN


def _only_transforms_itself(name: str, values: list[ast.expr | None]) -> bool:
    """Return True if every value but one is a chain of methods on the variable itself."""
    chained = 0
    for value in values:
        root = value
        while isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
            root = root.func.value
        chained += root is not None and ast.unparse(root) == name
    return chained == len(values) - 1


def _unpacked_from_next(
    script: Script,
    name: str,
    node: ast.expr,
    depth: int,
    entered: frozenset[str],
) -> Pipeline:
    """Return the part that `x, y = next(iterator)` gives; UNKNOWN for any other binding."""
    function = script.enclosing_function(node)
    for statement in ast.walk(function if function is not None else script.tree):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple):
            names = [e.id for e in statement.targets[0].elts if isinstance(e, ast.Name)]
            if name in names and isinstance(statement.value, ast.Call):
                return pipeline_part(script, statement.value, depth - 1, entered)
    return Pipeline.UNKNOWN


def _call(script: Script, call: ast.Call, depth: int, entered: frozenset[str]) -> Pipeline:
    name = script.call_name(call.func)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if method in DISTRIBUTE_METHODS:
        return Pipeline.DISTRIBUTED
    if name in _MAKERS or (name.startswith("tensorflow.data.Dataset.") and "()" not in name):
        return Pipeline.DATASET
    if name == "tensorflow_datasets.load" and _has_text_split(call):
        return Pipeline.DATASET
    if name in ("iter", "next") and call.args:
        part = pipeline_part(script, call.args[0], depth - 1, entered)
        table = _ITERATORS if name == "iter" else _OVER
        return table.get(part, Pipeline.UNKNOWN)
    function = resolver_of(script).called(call)
    if function is not None:
        return _returned(script, function, depth)
    if isinstance(call.func, ast.Attribute):
        part = pipeline_part(script, call.func.value, depth - 1, entered)
        if part in (Pipeline.DATASET, Pipeline.SHARDED_DATASET):
            if method == "shard":
                return Pipeline.SHARDED_DATASET
            return part if method in _TRANSFORMATIONS else Pipeline.UNKNOWN
    return Pipeline.UNKNOWN


def _has_text_split(call: ast.Call) -> bool:
    split, info = call_argument(call, "split"), call_argument(call, "with_info")
    return isinstance(split, ast.Constant) and isinstance(split.value, str) and info is None


def _returned(script: Script, function: Function, depth: int) -> Pipeline:
    """Return what a function of the script returns, if all of its returns agree."""
    parts = {
        pipeline_part(script, node.value, depth - 1) if node.value is not None else Pipeline.UNKNOWN
        for node in ast.walk(function)
        if isinstance(node, ast.Return) and script.enclosing_function(node) is function
    }
    return parts.pop() if len(parts) == 1 else Pipeline.UNKNOWN


def function_of(script: Script, node: ast.expr) -> tuple[Function | ast.Lambda, int] | None:
    """Return the function that runs when an expression is called, and how many of its first parameters have
    values already; None if the script does not have it."""
    node = resolve(script, node)
    if isinstance(node, ast.Lambda):
        return node, 0
    resolver = resolver_of(script)
    if isinstance(node, ast.Call) and script.call_name(node.func) == "functools.partial":
        inner = function_of(script, node.args[0]) if node.args else None
        return (inner[0], inner[1] + len(node.args) - 1) if inner is not None else None
    owner, maker = resolver.object_class(node)
    if maker is not None and owner:
        node = ast.Attribute(node, "__call__", ast.Load())
    function = resolver.called(ast.Call(node, [], []))
    if function is None or any(ast.unparse(d) != "staticmethod" for d in function.decorator_list):
        return None
    return function, int(is_method(script, function))
