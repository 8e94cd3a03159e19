"""The list of TensorFlow 1's variables that is left for the process which snapshots them.

Tried on TensorFlow 2.21's `tf.compat.v1`.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIST_NAME = "variables.json"
VARIABLE_KINDS = ("Variable", "VariableV2", "VarHandleOp")
"""Types of operations that hold a variable's value on a server."""


def write_variable_list(folder: str, graph: Any, cluster: dict[str, str]) -> None:
    """Write the list into the folder for snapshots, whole or not at all. Raises OSError."""
    text = json.dumps(list_variables(graph, cluster))
    path = os.path.join(folder, LIST_NAME)
    with open(path + ".new", "w") as file:
        file.write(text)
    os.replace(path + ".new", path)


def list_variables(graph: Any, cluster: dict[str, str]) -> dict[str, Any]:
    """Return every variable as another session must name it, and as a Saver names it in a
    checkpoint. ``unread`` are the names of what a checkpoint holds besides."""
    steps = graph.get_collection("global_step")
    unread = [str(o.name) for o in graph.get_collection("saveable_objects")]
    variables = []
    for variable in graph.get_collection("variables"):
        op = variable.op
        task = _task_of_device(str(variable.device))
        if op.type not in VARIABLE_KINDS or task not in cluster:
            unread.append(str(op.name))
            continue
        part = getattr(variable, "_save_slice_info", None)
        variables.append(
            {
                "name": str(part.full_name if part is not None else op.name),
                "slice": str(part.spec) if part is not None else "",
                "kind": str(op.type),
                "shared": str(op.get_attr("shared_name").decode() or op.name),
                "container": str(op.get_attr("container").decode()),
                "dtype": str(variable.dtype.base_dtype.name),
                "width": int(variable.dtype.base_dtype.size or 1),
                "shape": variable.shape.as_list(),
                "device": str(variable.device),
                "task": task,
            }
        )
    return {
        "cluster": cluster,
        "variables": variables,
        "unread": unread,
        "step": str(steps[0].op.name) if steps else "",
    }


def _task_of_device(device: str) -> str:
    """Return ``ps:0`` for ``/job:ps/replica:0/task:0/device:CPU:0``."""
    parts = dict(p.partition(":")[::2] for p in device.split("/") if ":" in p)
    return "%s:%s" % (parts.get("job", ""), parts.get("task", "0"))
