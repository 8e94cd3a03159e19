"""Initialises the variables of TensorFlow 1's servers with the values of a checkpoint.

The chief feeds what the program's own initialisers would compute, so the values reach each server as
those of any step do. No operation is added: the graph is final by then. Tried on TensorFlow 2.21's
`tf.compat.v1`.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    FedValue = tuple[Any, Any, Any]
    """A variable, the tensor that its initialiser assigns, and the value to feed for it."""

MAX_STEP_NBYTES = 1 << 30
"""Bytes that are fed in one step, unless one variable is larger."""
MAX_VARIABLE_NBYTES = (1 << 31) - (1 << 20)
"""Bytes of a variable that can be fed: a message is a protobuf, which holds less than 2 GiB."""


def prepare_with_values(call: Callable[..., Any], arguments: dict[str, Any], prefix: str) -> Any:
    """Return the session that ``call`` (`SessionManager.prepare_session`) makes with ``arguments``, its
    variables as in the checkpoint at ``prefix``; None if the program gives no initialiser.

    The program's ``init_fn`` is left out, as after every restore. Raises ValueError for a variable
    that is larger than a message may be.
    """
    if arguments.get("init_op") is None:
        return None
    reader = sys.modules["tensorflow.python.training.py_checkpoint_reader"]
    fed_values = read_values(arguments["self"]._graph, reader.NewCheckpointReader(prefix))
    for variable, _, value in fed_values:
        if getattr(value, "nbytes", 0) > MAX_VARIABLE_NBYTES:
            raise ValueError("%s is larger than a message may be" % variable.op.name)
    first_step, *later_steps = split_steps(fed_values, MAX_STEP_NBYTES)
    feed = dict(arguments.get("init_feed_dict") or {})
    feed.update({t: value for _, t, value in first_step})
    session = call(**dict(arguments, init_feed_dict=feed, init_fn=None))
    for step in later_steps:
        session.run([v.initializer for v, _, _ in step], {t: value for _, t, value in step})
    return session


def read_values(graph: Any, reader: Any) -> list[FedValue]:
    """Return the value of every variable, also of the parts of one, as a Saver names it."""
    fed_values = []
    for variable in graph.get_collection("variables"):
        part = getattr(variable, "_save_slice_info", None)
        value = reader.get_tensor(part.full_name if part is not None else variable.op.name)
        if part is not None:
            sides = zip(part.var_offset, part.var_shape)
            value = value[tuple(slice(at, at + size) for at, size in sides)]
        fed_values.append((variable, variable.initializer.inputs[1], value))
    return fed_values


def split_steps(fed_values: list[FedValue], max_nbytes: int) -> list[list[FedValue]]:
    """Split the values into steps of at most ``max_nbytes``; a larger one is a step of its own.

    What two initialisers assign is fed once at a time. What does not fit into the first step has,
    for a moment, the value that the program begins with.
    """
    batches: list[list[FedValue]] = [[]]
    sizes, fed = [0], [set()]  # type: list[int], list[set[int]]
    for fed_value in fed_values:
        _, tensor, value = fed_value
        size = int(getattr(value, "nbytes", 0))
        for index in range(len(batches) + 1):
            if index == len(batches):
                batches.append([])
                sizes.append(0)
                fed.append(set())
            fits = not batches[index] or sizes[index] + size <= max_nbytes
            if fits and id(tensor) not in fed[index]:
                batches[index].append(fed_value)
                sizes[index] += size
                fed[index].add(id(tensor))
                break
    return batches
