"""Values of a script that each process has for itself: another one on each rank.

They come from the rank's own batch and what is computed of it, its clock, its random numbers, its memory,
and the signals that it gets. They are followed through variables, attributes, functions and conditions, until
the ranks agree on them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from allaboard.formats.python.binding_places import Binding, Variable
from allaboard.formats.python.script_ast import Function, Script
from allaboard.formats.python.steps.joint_steps import JointSteps
from allaboard.formats.python.steps.own_calls import OwnCalls
from allaboard.formats.python.steps.own_kinds import (
    AGREED,
    COUNTER,
    ENTERS,
    LOADER,
    MAX_DEPTH,
    SIZES,
    STEPS,
    kind_of_number,
    kind_of_part,
    merged_kind,
)
from allaboard.formats.python.steps.own_questions import decision_kind
from allaboard.formats.python.steps.own_sources import is_shard


class OwnValues(OwnCalls):
    """What the processes of one script do not share."""

    def __init__(self, script: Script, steps: JointSteps) -> None:
        super().__init__(script)
        self._steps = steps
        self._kinds: dict[tuple[object, ...], str] = {}

    def kind(self, node: ast.expr | None) -> str:
        """Return of what a value is made that only this process has: ``batch``, ``loss`` (computed of the
        batch), ``clock``, ``chance``, ``memory``, ``signal`` or ``share`` (what gives this rank's batches);
        ``agreed`` if the ranks have exchanged it; "" for any other."""
        return self._kind(node, {}, MAX_DEPTH)

    def _kind(self, node: ast.expr | None, argument_kinds: Mapping[str, str], depth: int) -> str:
        if node is None or isinstance(node, ast.Constant) or depth <= 0:
            return ""
        key = (node, *sorted(argument_kinds.items()))
        if key not in self._kinds:
            self._kinds[key] = ""  # while it is looked at: it may be made of itself
            self._kinds[key] = self._kind_of(node, argument_kinds, depth - 1)
        return self._kinds[key]

    def _kind_of(self, node: ast.expr, argument_kinds: Mapping[str, str], depth: int) -> str:
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            return self._variable_kind(node, argument_kinds, depth)
        if isinstance(node, ast.Call):
            return self._call_kind(node, argument_kinds, depth)
        if isinstance(node, ast.Compare):
            if not isinstance(node.ops[0], ENTERS):
                return ""
            return kind_of_number(
                self._merged([node.left, *node.comparators], argument_kinds, depth)
            )
        if isinstance(node, (ast.Lambda, ast.JoinedStr)):
            return ""
        parts = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            parts = [node.elt]
        kind = self._merged(parts, argument_kinds, depth)
        return kind_of_number(kind) if isinstance(node, (ast.BinOp, ast.UnaryOp)) else kind

    def _merged(self, parts: list[ast.expr], argument_kinds: Mapping[str, str], depth: int) -> str:
        return merged_kind([self._kind(p, argument_kinds, depth) for p in parts])

    def _variable_kind(self, node: Variable, argument_kinds: Mapping[str, str], depth: int) -> str:
        if isinstance(node, ast.Attribute) and SIZES.fullmatch(node.attr):
            return ""
        if COUNTER.search(ast.unparse(node)):
            return ""
        if self._is_agreed(node):
            return AGREED
        if isinstance(node, ast.Name) and node.id in argument_kinds:
            return argument_kinds[node.id]
        bindings = self.bindings.of(node)
        kinds = [self._binding_kind(b, argument_kinds, depth) for b in bindings]
        if isinstance(node, ast.Name):
            kinds += self._parameter_kinds(node, depth)
        elif not bindings and isinstance(node, ast.Attribute):
            bindings_of_class = self._attribute_of_object(node)
            kinds += [self._binding_kind(b, {}, depth) for b in bindings_of_class]
            if not bindings_of_class:
                kinds.append(kind_of_part(self._kind(node.value, argument_kinds, depth), node.attr))
        elif not bindings and isinstance(node, ast.Subscript):
            is_share = is_shard(self._script, node)
            name = str(node.slice.value) if isinstance(node.slice, ast.Constant) else "loss"
            name = "loss" if name.lstrip("-").isdecimal() else name
            whole = self._kind(node.value, argument_kinds, depth)
            kinds.append("share" if is_share else kind_of_part(whole, name))
        return merged_kind(kinds)

    def _attribute_of_object(self, node: ast.Attribute) -> list[Binding]:
        """Return what the class of the script sets, of whose object this is an attribute."""
        class_name = self._script.assigned.get(ast.unparse(node.value), "")
        if class_name not in self._script.class_bodies:
            return []
        as_self = ast.Attribute(ast.Name("self", ast.Load()), node.attr, ast.Load())
        return self.bindings.of(as_self)

    def _parameter_kinds(self, name: ast.Name, depth: int) -> list[str]:
        function = self.bindings.parameter_owner(name)
        if function is None:
            return []
        parameters = [a.arg for a in function.args.args if a.arg not in ("self", "model")]
        if function.name in STEPS and parameters[:1] == [name.id]:
            return ["batch"]
        calls = self.bindings.callers(function)
        passed = [self.bindings.argument(function, c, name.id) for c in calls]
        return [self._kind(p, {}, depth) for p in passed]

    def _binding_kind(self, binding: Binding, argument_kinds: Mapping[str, str], depth: int) -> str:
        place, value = binding.place, binding.value
        function = self._script.enclosing_function(place)
        if function is not None and function.name in self._sources.signal_handlers:
            return "signal"
        if binding.is_item:
            return self._item_kind(binding, argument_kinds, depth)
        kind = self._kind(value, argument_kinds, depth)
        if binding.is_passed:
            return "" if kind in ("share", "batch") else kind
        if kind or not isinstance(place, (ast.Assign, ast.AugAssign)):
            return kind
        # A counter is the rank's own if it counts what the rank alone sees.
        for ancestor in self._script.ancestors(place):
            if isinstance(ancestor, Function):
                break
            if isinstance(ancestor, ast.If):
                decided = self.decided_by(ancestor.test, argument_kinds, depth)
                if decided:
                    return decided
        return ""

    def _item_kind(self, binding: Binding, argument_kinds: Mapping[str, str], depth: int) -> str:
        iterated = binding.value
        text = ast.unparse(iterated) if iterated is not None else ""
        if "enumerate(" in text and binding.number == 0:
            return ""
        kind = self._kind(iterated, argument_kinds, depth)
        if not LOADER.search(text):
            return "" if kind == "share" else kind
        if kind == "share":
            return "batch"
        is_training = isinstance(binding.place, ast.For) and self._steps.is_entered_in(
            binding.place.body
        )
        return "batch" if is_training and "range(" not in text else kind

    def decided_by(
        self,
        test: ast.expr,
        argument_kinds: Mapping[str, str] | None = None,
        depth: int = MAX_DEPTH,
    ) -> str:
        """Return the kind of the value by which a condition has another outcome on each rank; "" if it has
        the same on all, ``agreed`` if they have exchanged it."""
        passed = argument_kinds or {}
        return decision_kind(
            test,
            lambda node: self._kind(node, passed, depth),
            lambda call: self.bindings.called_function(call) is not None,
        )

    def _is_agreed(self, node: Variable) -> bool:
        scope = self._script.enclosing_function(node) if isinstance(node, ast.Name) else None
        if (scope, ast.unparse(node)) in self._sources.exchanged:
            return True
        if isinstance(node, ast.Name):
            return False
        holder = node.value
        return (
            isinstance(holder, (ast.Name, ast.Attribute))
            and ast.unparse(holder) != "self"
            and self._is_agreed(holder)
        )
