"""Collectives that a script calls under a condition on the rank, so that some ranks never enter them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from allaboard.formats.python.call_graph import CallGraph
from allaboard.formats.python.collective_calls import (
    COLLECTIVE_CALLS,
    HOROVOD_COLLECTIVES,
    JOINT_CONSTRUCTORS,
    enters_collective,
    is_before_sharding,
    is_limited_to_group,
    joins_of,
    joint_properties,
    meets_other_ranks,
)
from allaboard.formats.python.rank_conditions import differs_between_ranks, is_on_both_ways
from allaboard.formats.python.rank_tests import canonical_text, negated
from allaboard.formats.python.script_ast import Script, call_argument


class GuardedCall(NamedTuple):
    """A call that only some ranks reach, and the collective that it enters."""

    name: str
    """Full name of the collective."""
    call: ast.Call
    """The call that only some ranks reach."""
    condition: ast.If
    """The condition on the rank."""
    inner: ast.Call
    """The call of the collective: ``call`` itself, or one in a function of the script that it calls."""


def find_guarded_calls(script: Script, reach: CallGraph) -> Iterator[GuardedCall]:
    """Yield the calls of collectives that not all ranks can match."""
    guarded = list(_calls_under_rank(script, reach))
    conditions: dict[object, set[ast.If]] = {}
    for guarded_call in guarded:
        conditions.setdefault(_pair_key(script, guarded_call), set()).add(guarded_call.condition)
    for guarded_call in guarded:
        # The pair that lets one rank go first: both halves call it, in branches of their own.
        is_pair = len(conditions[_pair_key(script, guarded_call)]) > 1
        if not is_pair and not _is_on_both_ways(script, reach, guarded_call):
            yield guarded_call


def _pair_key(script: Script, guarded_call: GuardedCall) -> object:
    """Return what two calls share that may be the two halves of one pair.

    A function that has both halves meets all ranks by itself: it pairs only with another call of it.
    """
    if guarded_call.inner is guarded_call.call or not script.rank_condition(guarded_call.inner):
        return guarded_call.name
    return guarded_call.name, script.enclosing_function(guarded_call.inner)


def _calls_under_rank(script: Script, reach: CallGraph) -> Iterator[GuardedCall]:
    for name, call in (*script.calls, *joint_properties(script), *graph_runs(script)):
        direct = enters_collective(name, call)
        if not direct and reach.called_function(call) is None:
            continue
        condition = script.rank_condition(call)
        if condition is None or not differs_between_ranks(script, reach, condition.test):
            continue
        if _is_alike_inside(script, call, condition) or is_before_sharding(script, name, call):
            continue
        entered = [(name, call)] if direct else reach.certain_calls(call, COLLECTIVE_CALLS)
        if not direct or name not in JOINT_CONSTRUCTORS:
            entered = [(n, c) for n, c in entered if n not in JOINT_CONSTRUCTORS]
        # Of a pair in a function, the half that these ranks come to.
        reached = _conjuncts(condition.test)
        entered.sort(key=lambda pair: not _is_under(script, pair[1], reached))
        for entered_name, inner in entered:
            if meets_other_ranks(entered_name, script) and not is_limited_to_group(
                entered_name, inner
            ):
                yield GuardedCall(entered_name, call, condition, inner)
                break


def _is_alike_inside(script: Script, call: ast.Call, condition: ast.If) -> bool:
    """Return True for `if rank == 0 or whole:` around `if whole:`: all ranks come to what is inside.

    So they do behind `if rank != 0 and not whole: return`.
    """
    is_behind = script.is_after(call, condition)
    operator = ast.And if is_behind else ast.Or
    choices = [condition.test]
    if not is_behind and isinstance(condition.test, ast.BoolOp):  # ready and (rank == 0 or whole)
        choices += [v for v in condition.test.values if script.depends_on_rank(v)]
    shared = {
        _asked_variable(negated(v) if is_behind else v)
        for choice in choices
        if isinstance(choice, ast.BoolOp) and isinstance(choice.op, operator)
        for v in choice.values
        if not script.depends_on_rank(v)
    }
    required: set[str] = set()
    child: ast.AST = call
    for ancestor in script.ancestors(call):
        if ancestor is condition:
            break
        if isinstance(ancestor, ast.If) and child in ancestor.body:
            is_and = isinstance(ancestor.test, ast.BoolOp) and isinstance(ancestor.test.op, ast.And)
            parts = ancestor.test.values if is_and else [ancestor.test]  # type: ignore[attr-defined]
            required |= set(map(_asked_variable, parts))
        child = ancestor
    return bool(shared & required)


def _asked_variable(test: ast.expr) -> str:
    """Return the variable that is compared with a constant of a class; else the text of the condition."""
    is_choice = isinstance(test, ast.Compare) and isinstance(test.comparators[0], ast.Attribute)
    return ast.unparse(test.left if is_choice and isinstance(test, ast.Compare) else test)


def _conjuncts(test: ast.expr) -> frozenset[str]:
    """Return the texts of the conditions that all hold where this one does."""
    is_and = isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And)
    parts = test.values if is_and and isinstance(test, ast.BoolOp) else [test]
    return frozenset(map(canonical_text, parts))


def _is_under(script: Script, call: ast.Call, conditions: frozenset[str]) -> bool:
    condition = script.rank_condition(call)
    return condition is not None and canonical_text(condition.test) in conditions


def graph_runs(script: Script) -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls of a session that run a collective of Horovod which the script has built before:
    ``bcast = hvd.broadcast_global_variables(0)``, then ``session.run(bcast)``."""
    if not any("horovod.tensorflow" in line for line in script.lines):
        return
    for call in script.method_calls("run"):
        built = call_argument(call, "fetches", 0)
        if isinstance(built, (ast.Name, ast.Attribute)):
            built = script.ranks.sole_value(built)
        name = script.call_name(built.func) if isinstance(built, ast.Call) else ""
        if name in HOROVOD_COLLECTIVES:
            yield name, call


def _is_on_both_ways(script: Script, reach: CallGraph, guarded_call: GuardedCall) -> bool:
    # If the collective is in a function, any collective on the other way may match it.
    collectives = (
        frozenset([guarded_call.name, *joins_of(guarded_call.name)])
        if guarded_call.inner is guarded_call.call
        else COLLECTIVE_CALLS
    )
    runs = {call for name, call in graph_runs(script) if name in collectives}

    def enters(statement: ast.stmt) -> bool:
        is_run = bool(runs) and any(node in runs for node in ast.walk(statement))
        return is_run or reach.may_call(statement, collectives)

    return is_on_both_ways(script, guarded_call.condition, enters)
