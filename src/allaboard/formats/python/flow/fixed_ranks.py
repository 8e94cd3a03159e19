"""Where a script joins a job, with the rank and the size that it passes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from allaboard.formats.python.evaluation import integer
from allaboard.formats.python.script_ast import Script, call_argument

_CALLS = {
    "torch.distributed.init_process_group": (("rank", 4), ("world_size", 3)),
    "jax.distributed.initialize": (("process_id", 2), ("num_processes", 1)),
    "tensorflow.distribute.cluster_resolver.SimpleClusterResolver": (("task_id", 3), ("", -1)),
    "tensorflow.train.Server": (("task_index", 2), ("", -1)),
    "tensorflow.distribute.Server": (("task_index", 2), ("", -1)),
}
"""Calls that join a job: names and positions of the arguments for the rank and for the size."""
_BRANCHES = (ast.If, ast.IfExp, ast.ExceptHandler, ast.Match, ast.Lambda)
MAX_CALL_DEPTH = 4
"""Functions between the top of the script and the call."""


@dataclass(frozen=True)
class Join:
    """One call by which a script joins a job."""

    call: ast.Call
    name: str
    """Full name of what is called."""
    rank_argument: str
    """Name of the argument for the rank."""
    rank: ast.expr
    """The expression that is passed for the rank."""
    size: ast.expr | None
    """That for the number of ranks; None if none is passed."""


def joins(script: Script) -> Iterator[Join]:
    """Yield the calls that join a job with a rank."""
    for name, call in script.calls:
        if name not in _CALLS:
            continue
        (rank_name, rank_position), (size_name, size_position) = _CALLS[name]
        rank = call_argument(call, rank_name, rank_position)
        size = call_argument(call, size_name, size_position) if size_name else None
        if rank is not None:
            yield Join(call, name, rank_name, rank, size)


def join_size(script: Script, join: Join) -> int | None:
    """Return the number of ranks, or of tasks of this job in TensorFlow's cluster, if it is constant."""
    if not join.name.startswith("tensorflow."):
        return integer(script, join.size)
    from allaboard.formats.python.resolution import resolve
    from allaboard.formats.python.written_tf_config import dict_entries

    cluster = resolve(script, join.call.args[0]) if join.call.args else None
    if isinstance(cluster, ast.Call) and cluster.args:  # tf.train.ClusterSpec({...})
        cluster = resolve(script, cluster.args[0])
    entries = dict_entries(script, cluster) if cluster is not None else None
    job = call_argument(join.call, "task_type", 2) or call_argument(join.call, "job_name", 1)
    if entries is None or not isinstance(job, ast.Constant) or job.value not in entries:
        return None
    listed = resolve(script, entries[str(job.value)][1])
    return len(listed.elts) if isinstance(listed, ast.List) else None


def is_unconditional(script: Script, node: ast.AST, depth: int = MAX_CALL_DEPTH) -> bool:
    """Return True if every run of the script comes to a node, as far as its text shows."""
    child = node
    for above in script.ancestors(node):
        is_main_guard = isinstance(above, ast.If) and "__name__" in ast.unparse(above.test)
        if isinstance(above, _BRANCHES) and not is_main_guard:
            return False
        if isinstance(above, ast.ClassDef):
            return False
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            uses = script.name_uses(above)
            return (
                depth > 0
                and bool(uses)
                and all(is_unconditional(script, use, depth - 1) for use in uses)
            )
        block = getattr(above, "body", None)
        if isinstance(block, list) and child in block:
            earlier = block[: block.index(child)]
            if any(isinstance(s, ast.If) and _may_leave(s) for s in earlier):
                return False
        child = above
    return True


def _may_leave(statement: ast.stmt) -> bool:
    return any(isinstance(n, (ast.Return, ast.Continue, ast.Break)) for n in ast.walk(statement))
