"""Decisions that each rank takes by what it alone sees, and by which it leaves the others in a call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from allaboard.formats.python.rank_conditions import is_on_both_ways
from allaboard.formats.python.script_ast import Function, Script, leaves_block
from allaboard.formats.python.steps.joint_steps import JointSteps, joint_steps_of
from allaboard.formats.python.steps.own_kinds import AGREED
from allaboard.formats.python.steps.own_sources import carries_agreement
from allaboard.formats.python.steps.own_values import OwnValues

_RETRIED = ("StopIteration", "KeyboardInterrupt", "Empty", "TimeoutError")
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


class OwnDecision(NamedTuple):
    """A decision of one rank, and where the others wait for it."""

    effect: str
    """``skips`` (leaves out the rest of a round), ``stops`` (leaves the loop) or ``enters``."""
    kind: str
    """What the decision is made by: a kind of OwnValues, ``nan``, or ``exception``."""
    condition: ast.If | ast.While | ast.ExceptHandler
    """The condition or the handler."""
    leaving: ast.stmt | None
    """The statement by which the rank leaves; None where it enters or a loop's own condition ends it."""
    entered: str
    """Name of what the other ranks enter."""
    call: ast.Call | None
    """The call of it; None for that which a library makes."""


@lru_cache(maxsize=4)
def find_own_decisions(script: Script) -> tuple[OwnDecision, ...]:
    """Return the decisions by which the ranks of a script may come to different calls."""
    return tuple(_find(script))


def _find(script: Script) -> Iterator[OwnDecision]:
    steps = joint_steps_of(script)
    own_values = OwnValues(script, steps)
    decided: dict[ast.AST, str] = {}
    for node in list(script.parents):
        if isinstance(node, ast.ExceptHandler):
            yield from _of_handler(script, steps, node)
        elif isinstance(node, (ast.If, ast.While)) and not isinstance(node.test, ast.Constant):
            kind = own_values.decided_by(node.test)
            if not kind or kind == AGREED or script.rank_condition(node) is not None:
                continue
            parting = _of_condition(script, steps, node)
            if parting is None or (kind == "nan" and parting.effect == "stops"):
                continue  # a loss that is not finite ends the run on all ranks
            # What is inside of such a decision is parted by it already.
            if kind not in {decided.get(a) for a in script.ancestors(node)}:
                yield parting._replace(kind=kind)
            decided[node] = kind


def _of_condition(
    script: Script, steps: JointSteps, condition: ast.If | ast.While
) -> OwnDecision | None:
    """Return what a condition leads to if it differs between ranks."""
    if isinstance(condition, ast.While):
        entered = steps.first_entered(condition.body)
        return OwnDecision("stops", "", condition, None, *entered) if entered else None
    if leaves_block(condition.body) and not condition.orelse:
        return _after_leaving(script, steps, condition, condition.body[-1])
    for block in (condition.body, condition.orelse):
        entered = steps.first_entered(block)
        if entered is not None and not is_on_both_ways(
            script, condition, lambda statement: steps.entered_by(statement) is not None
        ):
            return OwnDecision("enters", "", condition, None, *entered)
    return None


def _after_leaving(
    script: Script, steps: JointSteps, place: ast.If | ast.Try, leaving: ast.stmt
) -> OwnDecision | None:
    """Return what the ranks that do not leave come to: in the same round, or in the next ones."""
    decision = place if isinstance(place, ast.If) else place.handlers[0]
    function = script.enclosing_function(place)
    loop = next((a for a in script.ancestors(place) if isinstance(a, (*_LOOPS, Function))), None)
    loop = loop if isinstance(loop, _LOOPS) else None
    after = script.statements_after(place)
    if isinstance(leaving, ast.Continue) and isinstance(loop, ast.For):
        in_round = set(ast.walk(loop))
        entered = steps.first_entered([s for s in after if s in in_round])
        return OwnDecision("skips", "", decision, leaving, *entered) if entered else None
    if isinstance(leaving, (ast.Break, ast.Return)) and loop is not None:
        entered = steps.first_entered(loop.body)
        return OwnDecision("stops", "", decision, leaving, *entered) if entered else None
    if not isinstance(leaving, ast.Return):
        return None
    name = function.name if function is not None else ""
    is_nothing = leaving.value is None or ast.unparse(leaving.value) == "None"
    entered = steps.first_entered(after)
    if entered is None and name == "training_step" and steps.is_lightning and is_nothing:
        return OwnDecision("skips", "", decision, leaving, "backward", None)
    if entered is None or not name.endswith("_step"):
        return None
    return OwnDecision("skips", "", decision, leaving, *entered)


def _of_handler(
    script: Script, steps: JointSteps, handler: ast.ExceptHandler
) -> Iterator[OwnDecision]:
    """Yield a handler that goes on with the next batch where the step's backward follows the `try`."""
    block, leaving = script.parents[handler], handler.body[-1]
    if not isinstance(block, ast.Try) or not isinstance(leaving, ast.Continue):
        return
    caught = ast.unparse(handler.type) if handler.type is not None else ""
    if any(name in caught for name in _RETRIED) or steps.is_entered_in(block.body):
        return
    parting = _after_leaving(script, steps, block, leaving)
    if (
        parting is not None
        and parting.entered == "backward"
        and not _exchanges_before(script, block)
    ):
        yield parting._replace(kind="exception", condition=handler)


def _exchanges_before(script: Script, block: ast.Try) -> bool:
    """Return True if a call before the end of the handlers may make all ranks decide alike."""
    scope: ast.AST = script.enclosing_function(block) or script.tree
    last_line = block.end_lineno or block.lineno
    return any(
        isinstance(n, ast.Call) and n.lineno <= last_line and carries_agreement(ast.unparse(n.func))
        for n in ast.walk(scope)
    )
