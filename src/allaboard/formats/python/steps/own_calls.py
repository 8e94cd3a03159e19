"""What calls give that each process has for itself: by what they get, and what functions return."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property

from allaboard.formats.python.flow.bindings import Bindings, bindings_of
from allaboard.formats.python.script_ast import Function, Script
from allaboard.formats.python.steps.own_kinds import (
    AGREED,
    DIVIDES,
    EVALUATES,
    MAX_DEPTH,
    SAME_VALUE,
    SIZES,
    kind_of_number,
    merged_kind,
)
from allaboard.formats.python.steps.own_sources import OwnSources, carries_agreement


class OwnCalls(ABC):
    """The calls of one script, for a class that knows the kinds of its other expressions."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._sources = OwnSources(script)

    @cached_property
    def bindings(self) -> Bindings:
        """The values of the script's variables."""
        return bindings_of(self._script)

    @abstractmethod
    def _kind(self, node: ast.expr | None, argument_kinds: Mapping[str, str], depth: int) -> str:
        """Return the kind of a value, where the parameters of its function have these kinds."""

    @abstractmethod
    def decided_by(
        self,
        test: ast.expr,
        argument_kinds: Mapping[str, str] | None = None,
        depth: int = MAX_DEPTH,
    ) -> str:
        """Return the kind of the value by which a condition has another outcome on each rank."""

    def _call_kind(self, node: ast.Call, argument_kinds: Mapping[str, str], depth: int) -> str:
        name = self._script.call_name(node.func)
        leaf = ast.unparse(node.func).rpartition(".")[2]
        if SIZES.fullmatch(leaf):
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
        if function is None and EVALUATES.search(leaf) and "share" in kinds:
            return "loss"
        receiver = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        if function is not None and function.name != "__init__":
            return self._result_kind(function, node, argument_kinds, depth)
        kinds += [self._kind(p, argument_kinds, depth) for p in receiver]
        kind = merged_kind(
            [k for k in kinds if k != "share" or DIVIDES.search(leaf) or SAME_VALUE.fullmatch(leaf)]
        )
        return kind if SAME_VALUE.fullmatch(leaf) else kind_of_number(kind)

    def _gives_share(
        self, node: ast.Call, name: str, leaf: str, argument_kinds: Mapping[str, str], depth: int
    ) -> bool:
        if leaf == "DistributedSampler" or name == "accelerate.Accelerator().prepare":
            return True
        is_data = DIVIDES.search(leaf) is not None or leaf in self._sources.data_classes
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
        return merged_kind(kinds)
