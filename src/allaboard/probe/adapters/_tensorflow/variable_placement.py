"""Variables that each task of a TensorFlow cluster holds, and their bytes.

The program's own process places them: TensorFlow 1 by the graph, TensorFlow 2 when the chief makes
them. They are noted, so that a server that holds too much, or nothing, can be named. Tried on
TensorFlow 2.21 and its `tf.compat.v1`.
"""

from __future__ import annotations

import functools

from ... import member
from ...signal_errors import reraise_from_handler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    VariableTotals = dict[str, tuple[int, int]]
    """Task ("ps:0") -> number and bytes of the variables placed on it."""

MAX_NOTED_TASKS = 32
"""Tasks whose variables are noted: notes have a bounded room in the black box."""


def noting_placement(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of SessionManager that returns a session: the graph is final by then."""

    @functools.wraps(call)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = call(self, *args, **kwargs)
        try:
            totals: VariableTotals = {}
            for variable in self._graph.get_collection("variables"):
                _add_variable(totals, variable)
            _note_totals(totals)
        except Exception as error:
            reraise_from_handler(error)
            member.here.note("placement", repr(error))
        return result

    return wrapper


def hook_creation(module: Any) -> None:
    """Hook variables of TensorFlow 2's chief, which makes each on one server, or in parts on
    several."""
    cls = module.ParameterServerStrategyV2Extended
    call = cls._create_variable_round_robin
    totals: VariableTotals = {}

    @functools.wraps(call)
    def create_variable(self: Any, *args: Any, **kwargs: Any) -> Any:
        variable = call(self, *args, **kwargs)
        try:
            _add_variable(totals, variable)
            _note_totals(totals)
        except Exception as error:
            reraise_from_handler(error)
            member.here.note("placement", repr(error))
        return variable

    cls._create_variable_round_robin = create_variable


def hook_device_setter(module: Any) -> None:
    """Hook `replica_device_setter`, which returns None, and places nothing, if the cluster has no
    ps."""
    call = module.replica_device_setter

    @functools.wraps(call)
    def replica_device_setter(*args: Any, **kwargs: Any) -> Any:
        result = call(*args, **kwargs)
        if result is None:
            member.here.note("replica_device_setter", "no ps in its cluster")
        return result

    module.replica_device_setter = replica_device_setter


def _add_variable(totals: VariableTotals, variable: Any) -> None:
    """Add one variable to the totals of its task; its device reads "/job:ps/task:1/..."."""
    job, _, task_and_device = str(variable.device).partition("/job:")[2].partition("/")
    index = task_and_device.partition("task:")[2].partition("/")[0]
    nbytes = (variable.shape.num_elements() or 0) * variable.dtype.base_dtype.size
    task = "%s:%s" % (job, index or "0")
    count, total_nbytes = totals.get(task, (0, 0))
    totals[task] = count + 1, total_nbytes + nbytes


def _note_totals(totals: VariableTotals) -> None:
    for task in sorted(totals)[:MAX_NOTED_TASKS]:
        member.here.notes["placed on " + task] = "%d variables, %d bytes" % totals[task]
    member.here.identify()
