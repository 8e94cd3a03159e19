"""Values of a script that each process has for itself: another one on each rank.

They come from the rank's own batch and what is computed of it, its clock, its random numbers, its memory,
and the signals that it gets. They are followed through variables, attributes, functions and conditions, until
the ranks agree on them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from functools import cached_property

from allaboard.formats.python.binding_places import Binding, Variable
from allaboard.formats.python.flow.bindings import Bindings, bindings_of
from allaboard.formats.python.script_ast import Function, Script
from allaboard.formats.python.steps.joint_steps import JointSteps
from allaboard.formats.python.steps.own_questions import asked_if_any, asks_if_finite, is_verdict
from allaboard.formats.python.steps.own_sources import OwnSources, carries_agreement, is_shard

AGREED = "agreed"
"""The kind of a value that the ranks have reduced or exchanged."""
MAX_DEPTH = 30
"""Variables and expressions that are followed into each other."""
_LOADER = re.compile(
    r"loader|dataset|\bdata\b|\bdl\b|train_?data|batches|_iter\b|(?:train|val|test)_ds\b", re.I
)
"""Matches what a loop over batches runs over."""
_DIVIDES = re.compile(r"loader|dataset|data|sampler|batches|shard|split", re.I)
"""Matches names of calls that give a rank its share if they get its number."""
_STEPS = ("training_step", "validation_step", "test_step", "train_step")
"""Functions that get one batch, as their first argument."""
_SIZES = re.compile(
    r"len|size|numel|nelement|dim|isinstance|type|range|hasattr|callable|id|shape|dtype|device|ndim|is_cuda"
    r"|batch_size|epoch|keys|print"
)
"""Calls and attributes of a batch that are the same on all ranks."""
_SAME_VALUE = re.compile(
    r"to|cuda|cpu|detach|clone|squeeze|unsqueeze|view|reshape|enumerate|zip|tqdm|iter|next|items|values|get"
    r"|list|tuple|dict|float|half|bfloat16|to_device|send_to_device"
)
"""Calls that return their argument, or parts of it."""
_EVALUATES = re.compile(r"validat|eval|test", re.I)
"""Matches names of functions that compute a metric."""
_MEASURE = re.compile(
    r"loss|acc|err|score|metric|nll|perplexity|ppl|auc|f1|iou|reward|avg|mean|value|stop|\bnorm",
    re.I,
)
"""Matches names of what is measured on a batch."""
_COUNTER = re.compile(
    r"(?:^|[.\[\]'\"])(?:(?:global|local|train|training|total|opt\w*|update|cur\w*|max|num|n|completed|static"
    r"|start|resume)_)*(?:steps?|epochs?|iter|iters|iterations?|idx)(?:'\]|\Z)"
)
"""Matches names of counters, which go on alike on all ranks."""
_ENTERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class OwnValues:
    """What the processes of one script do not share."""

    def __init__(self, script: Script, steps: JointSteps) -> None:
        self._script = script
        self._steps = steps
        self._sources = OwnSources(script)
        self._kinds: dict[tuple[object, ...], str] = {}

    @cached_property
    def bindings(self) -> Bindings:
        """The values of the script's variables."""
        return bindings_of(self._script)

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
            if not isinstance(node.ops[0], _ENTERS):
                return ""
            return _number(self._merged([node.left, *node.comparators], argument_kinds, depth))
        if isinstance(node, (ast.Lambda, ast.JoinedStr)):
            return ""
        parts = [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr)]
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp)):
            parts = [node.elt]
        kind = self._merged(parts, argument_kinds, depth)
        return _number(kind) if isinstance(node, (ast.BinOp, ast.UnaryOp)) else kind

    def _merged(self, parts: list[ast.expr], argument_kinds: Mapping[str, str], depth: int) -> str:
        return _merge([self._kind(p, argument_kinds, depth) for p in parts])

    def _variable_kind(self, node: Variable, argument_kinds: Mapping[str, str], depth: int) -> str:
        if isinstance(node, ast.Attribute) and _SIZES.fullmatch(node.attr):
            return ""
        if _COUNTER.search(ast.unparse(node)):
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
                kinds.append(_part_of(self._kind(node.value, argument_kinds, depth), node.attr))
        elif not bindings and isinstance(node, ast.Subscript):
            is_share = is_shard(self._script, node)
            name = str(node.slice.value) if isinstance(node.slice, ast.Constant) else "loss"
            name = "loss" if name.lstrip("-").isdecimal() else name
            whole = self._kind(node.value, argument_kinds, depth)
            kinds.append("share" if is_share else _part_of(whole, name))
        return _merge(kinds)

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
        if function.name in _STEPS and parameters[:1] == [name.id]:
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
        if not _LOADER.search(text):
            return "" if kind == "share" else kind
        if kind == "share":
            return "batch"
        is_training = isinstance(binding.place, ast.For) and self._steps.is_entered_in(
            binding.place.body
        )
        return "batch" if is_training and "range(" not in text else kind

    def _call_kind(self, node: ast.Call, argument_kinds: Mapping[str, str], depth: int) -> str:
        name = self._script.call_name(node.func)
        leaf = ast.unparse(node.func).rpartition(".")[2]
        if _SIZES.fullmatch(leaf):
            return ""
        if carries_agreement(ast.unparse(node.func)):
            return AGREED
        if kind := self._sources.kind_of_call(name):
            return kind
        if self._gives_share(node, name, leaf, argument_kinds, depth):
            return "share"
        arguments = [*node.args, *(k.value for k in node.keywords)]
        function = self.bindings.called_function(node)
        kinds = [self._kind(a, argument_kinds, depth) for a in arguments]
        if function is None and _EVALUATES.search(leaf) and "share" in kinds:
            return "loss"
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        if function is not None and function.name != "__init__":
            return self._result_kind(function, node, argument_kinds, depth)
        kinds += [self._kind(p, argument_kinds, depth) for p in receiver]
        kind = _merge(
            [
                k
                for k in kinds
                if k != "share" or _DIVIDES.search(leaf) or _SAME_VALUE.fullmatch(leaf)
            ]
        )
        return kind if _SAME_VALUE.fullmatch(leaf) else _number(kind)

    def _gives_share(
        self, node: ast.Call, name: str, leaf: str, argument_kinds: Mapping[str, str], depth: int
    ) -> bool:
        if leaf == "DistributedSampler" or name == "accelerate.Accelerator().prepare":
            return True
        is_data = _DIVIDES.search(leaf) is not None or leaf in self._sources.data_classes
        arguments = [*node.args, *(k.value for k in node.keywords)]
        return is_data and any(
            self._script.ranks.rank_kind(a) == "number"
            or self._kind(a, argument_kinds, depth) == "share"
            for a in arguments
        )

    def _result_kind(
        self, function: Function, call: ast.Call, argument_kinds: Mapping[str, str], depth: int
    ) -> str:
        """Return the kind of what a function of the script returns for these arguments."""
        if depth < MAX_DEPTH // 3:
            return ""
        names = [a.arg for a in (*function.args.args, *function.args.kwonlyargs)]
        passed = {
            n: self._kind(self.bindings.argument(function, call, n), argument_kinds, depth)
            for n in names
        }
        kinds = []
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and self._script.enclosing_function(node) is function:
                kinds.append(self._kind(node.value, passed, depth))
                around = self._script.ancestors(node)
                if isinstance(node.value, ast.Constant):
                    tests = [a.test for a in around if isinstance(a, ast.If)]
                    kinds += [self.decided_by(t, passed, depth) for t in tests]
        return _merge(kinds)

    def decided_by(
        self,
        test: ast.expr,
        argument_kinds: Mapping[str, str] | None = None,
        depth: int = MAX_DEPTH,
    ) -> str:
        """Return the kind of the value by which a condition has another outcome on each rank; "" if it has
        the same on all, ``agreed`` if they have exchanged it."""
        argument_kinds = argument_kinds or {}
        if isinstance(test, ast.BoolOp):
            return _merge([self.decided_by(v, argument_kinds, depth) for v in test.values])
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            if isinstance(test.operand, ast.Name):
                return self._kind(test.operand, argument_kinds, depth)
            return self.decided_by(test.operand, argument_kinds, depth)
        questioned = asked_if_any(test) if not asks_if_finite(test) else None
        if questioned is not None:
            kind = self._kind(questioned, argument_kinds, depth)
            return "batch" if kind == "loss" else kind if kind in ("batch", AGREED) else ""
        if asks_if_finite(test):
            kind = self._merged(
                [c for c in ast.walk(test) if isinstance(c, ast.Call)], argument_kinds, depth
            )
            kind = kind or ("loss" if "loss" in ast.unparse(test).lower() else "")
            return {"loss": "nan", "batch": "nan"}.get(kind, kind)
        if isinstance(test, ast.Compare):
            kind = self._kind(test, argument_kinds, depth)
            if not kind and isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
                kind = self._merged([test.left, *test.comparators], argument_kinds, depth)
                kind = kind if kind in ("chance", AGREED) else ""
            return kind
        if isinstance(test, (ast.Name, ast.Attribute, ast.Subscript)):
            kind = self._kind(test, argument_kinds, depth)
            return "" if kind in ("batch", "share") else kind
        if isinstance(test, ast.Call):
            kind = self._kind(test, argument_kinds, depth)
            is_seen = self.bindings.called_function(test) is not None
            return kind if is_seen or kind == AGREED or is_verdict(test) else ""
        return ""

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


def _merge(kinds: list[str]) -> str:
    """Return the kind of what is made of several values: once the ranks have agreed, it is agreed."""
    return AGREED if AGREED in kinds else next(filter(None, kinds), "")


def _number(kind: str) -> str:
    """Return the kind of what is computed of a value."""
    return "loss" if kind == "batch" else "" if kind == "share" else kind


def _part_of(kind: str, name: str) -> str:
    """Return the kind of a named part of a value: not all that a step returns is computed of the batch."""
    return "" if kind == "loss" and not _MEASURE.search(name) else kind
