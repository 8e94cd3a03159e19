"""A Python script's syntax tree, with the questions that rules on code ask of it.

Names are spelled out by the script's imports (``dist.barrier`` becomes ``torch.distributed.barrier``); a
method's receiver by what its variable was assigned from (``strategy.run`` becomes
``tensorflow.distribute.MultiWorkerMirroredStrategy().run``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

from allaboard.facts import Evidence, Place, ScriptFacts
from allaboard.formats.python.import_names import full_name, imported_names
from allaboard.formats.python.rank_dataflow import RankDataflow
from allaboard.formats.python.rank_tests import negated
from allaboard.formats.python.text_positions import column_of
from allaboard.formats.python.unpacked_arguments import changed_names, expand_unpacked_arguments
from allaboard.formats.python_parser import parse_without_warnings

Function = ast.FunctionDef | ast.AsyncFunctionDef

_RANK = re.compile(
    r"rank|is_main|main_process|is_master|master_process|is_chief|process_index|task_id|task_index"
    r"|is_global_zero|process_zero|get_ordinal"
    r"|process_id|_is_leader|node_id|args\.should_save|args\.should_log",
    re.I,
)
_OPTION = re.compile(r"[\w.]*(?:rank|process)\w*_only\b(?!\.)", re.I)
"""Matches flags that say what one rank alone is to do (`load_rank0_only`): all ranks have the same value."""
_USUAL_OBJECTS = {"accelerator": "accelerate.Accelerator", "fabric": "lightning.Fabric"}
"""Names under which everybody passes these objects to functions, and what made them."""
_USUAL_ENGINES = ("engine", "model_engine", "ds_engine", "deepspeed_engine")
"""Names under which DeepSpeed's engine is passed on, in a script that imports DeepSpeed."""
_STRATEGY = re.compile(r"tensorflow\.distribute\.(?:\w+\.)*\w*Strategy\(\)")


class Script:
    """One parsed script. ``calls`` are all calls with their full names, in the text's order."""

    def __init__(self, facts: ScriptFacts) -> None:
        self.file = facts.file
        self.sharding = facts.sharding
        self.lines = facts.source.split("\n")
        self.tree = parse_without_warnings(facts.source)
        self.names = imported_names(self.tree)
        self.ranks = RankDataflow(self.tree, self.names)
        expand_unpacked_arguments(self.tree, self.ranks)
        self._is_lite = "(LightningLite)" in facts.source
        """True if a class is Lightning's older Fabric, and calls its methods on itself."""
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
        self._functions: dict[str, list[Function]] = {}
        for node in self.parents:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._functions.setdefault(node.name, []).append(node)
        self._exit_conditions: dict[int, ast.If | None] = {}
        self._choices: dict[ast.AST, ast.If] = {}
        """Conditions that are no ``if``, as the statements that they could be, by what they guard."""
        self._rank_tests: dict[ast.expr, bool] = {}
        self.assigned = self._assigned()
        self.imported: dict[str, ast.expr] = {
            name: ast.parse(text, mode="eval").body for name, text in facts.imported
        }
        """Constants of other files, by the names that this one uses."""
        calls = [n for n in ast.walk(self.tree) if isinstance(n, ast.Call)]
        calls.sort(key=lambda n: (n.lineno, n.col_offset))
        self.calls = [(self.call_name(n.func), n) for n in calls]

    def _assigned(self) -> dict[str, str]:
        """Return, by variable, the full name of the call that it was last assigned from."""
        assigned_from: dict[str, str] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                callee = full_name(node.value.func, self.names)
                for target in node.targets:
                    # It returns the engine first, and takes the optimizer and others along.
                    if callee == "deepspeed.initialize" and isinstance(target, ast.Tuple):
                        target = target.elts[0] if target.elts else target
                    name = full_name(target, {})
                    if callee and name:
                        assigned_from[name] = callee
            elif (
                isinstance(node, ast.Assign)
                and isinstance(node.value, ast.Attribute)
                and node.value.attr == "COMM_WORLD"
                and isinstance(node.targets[0], ast.Name)
            ):
                # comm = MPI.COMM_WORLD, whose methods are called as those of an object that was made
                assigned_from[node.targets[0].id] = full_name(node.value, self.names)
        return assigned_from

    def call_name(self, node: ast.expr) -> str:
        """Return the full name of what is called."""
        if isinstance(node, ast.Attribute):
            receiver = full_name(node.value, {})
            if receiver in self.assigned:
                return f"{self.assigned[receiver]}().{node.attr}"
            bare = receiver.removeprefix("self.").lstrip("_")
            class_name = _USUAL_OBJECTS.get(bare, "")
            is_engine = bare.rpartition(".")[2].lstrip("_") in _USUAL_ENGINES
            if is_engine and "deepspeed" in self.names.values():
                class_name = "deepspeed.initialize"
            if receiver == "self" and self._is_lite:
                class_name = "lightning.Fabric"
            if class_name and receiver not in self.names:
                return f"{class_name}().{node.attr}"
            full = full_name(node, self.names)
            return full or f"?.{node.attr}"
        return full_name(node, self.names)

    def functions_named(self, name: str) -> list[Function]:
        """Return the functions and methods of this name that the script defines."""
        return self._functions.get(name, [])

    def calls_of(self, *names: str) -> list[ast.Call]:
        """Return the calls of these full names."""
        return [node for name, node in self.calls if name in names]

    def method_calls(self, *names: str) -> list[ast.Call]:
        """Return the calls of methods of these names, on whatever object."""
        return [
            n for _, n in self.calls if isinstance(n.func, ast.Attribute) and n.func.attr in names
        ]

    @cached_property
    def strategies(self) -> list[ast.Call]:
        """Calls that make strategies of TensorFlow."""
        return [node for name, node in self.calls if _STRATEGY.fullmatch(name + "()")]

    @cached_property
    def is_distributed(self) -> bool:
        """True if the script joins a group of PyTorch or makes a strategy of TensorFlow."""
        return bool(self.calls_of("torch.distributed.init_process_group") or self.strategies)

    @cached_property
    def uses_launching_library(self) -> bool:
        """True if the script uses a library that itself shards data and wraps the model."""
        tops = {full.partition(".")[0] for full in self.names.values()}
        lightweight = {
            "accelerate",
            "lightning",
            "pytorch_lightning",
            "deepspeed",
            "horovod",
            "ignite",
        }
        return bool(
            tops & (lightweight | {"transformers", "ray", "composer", "colossalai", "fairscale"})
        )

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the enclosing nodes, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def enclosing_function(self, node: ast.AST) -> Function | None:
        """Return the innermost function around a node; None at the top of the script."""
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return ancestor
        return None

    def is_in_strategy_scope(self, node: ast.AST) -> bool:
        """Return True if the node stands inside ``with strategy.scope():``."""
        for ancestor in self.ancestors(node):
            if isinstance(ancestor, (ast.With, ast.AsyncWith)):
                for item in ancestor.items:
                    context = item.context_expr
                    function = context.func if isinstance(context, ast.Call) else None
                    if isinstance(function, ast.Attribute) and function.attr == "scope":
                        return True
        return False

    def rank_condition(self, node: ast.AST) -> ast.If | None:
        """Return the ``if`` that lets only some ranks reach the node.

        An ``if rank != 0: return`` before it, in the same block or an outer one, counts too, and so do
        ``f() if rank == 0 else None``, ``rank == 0 and f()``, ``while rank == 0:`` and ``match rank:``.
        """
        child = node
        for ancestor in self.ancestors(node):
            choice = self._choice_around(child, ancestor)
            if choice is not None:
                return choice
            if (
                isinstance(ancestor, ast.If)
                and child is not ancestor.test
                and self.depends_on_rank(ancestor.test)
            ):
                return ancestor
            for field in ("body", "orelse", "finalbody"):
                block = getattr(ancestor, field, None)
                if isinstance(block, list) and child in block:
                    exit_condition = self._exit_condition(block)
                    if exit_condition is not None and block.index(exit_condition) < block.index(
                        child
                    ):
                        return exit_condition
            if isinstance(ancestor, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return None
            child = ancestor
        return None

    def _choice_around(self, child: ast.AST, ancestor: ast.AST) -> ast.If | None:
        """Return the condition on the rank by which a node lets its child run, if it is no ``if``."""
        if isinstance(ancestor, ast.IfExp):
            if child is not ancestor.test and self.depends_on_rank(ancestor.test):
                branches = [ast.Expr(ancestor.body), ast.Expr(ancestor.orelse)]
                for branch in branches:
                    ast.copy_location(branch, branch.value)
                return self._choice(ancestor, ancestor.test, [branches[0]], [branches[1]])
        elif isinstance(ancestor, ast.BoolOp):
            earlier = ancestor.values[: ancestor.values.index(child)]  # type: ignore[arg-type]
            deciding = next((v for v in earlier if self.depends_on_rank(v)), None)
            if deciding is not None and isinstance(child, ast.expr):
                is_or = isinstance(ancestor.op, ast.Or)
                test = ast.copy_location(negated(deciding), deciding) if is_or else deciding
                body = [ast.copy_location(ast.Expr(child), child)]
                return self._choice(child, test, body, [], at=ancestor)
        elif isinstance(ancestor, ast.While):
            if child is not ancestor.test and self.depends_on_rank(ancestor.test):
                return self._choice(ancestor, ancestor.test, ancestor.body, [])
        elif isinstance(ancestor, ast.match_case):
            return self._case_choice(ancestor)
        return None

    def _case_choice(self, case: ast.match_case) -> ast.If | None:
        """Return a case of a ``match`` on the rank as an ``if`` whose other branch are the other cases."""
        match = self.parents[case]
        if not isinstance(match, ast.Match) or case.guard is not None:
            return None
        numbers = [
            ast.Compare(match.subject, [ast.Eq()], [c.pattern.value])
            for c in match.cases
            if isinstance(c.pattern, ast.MatchValue) and (c is case or not _is_value(case.pattern))
        ]
        if not numbers:
            return None
        comparison = ast.copy_location(numbers[0], match)
        is_other = not _is_value(case.pattern)
        test = (
            ast.copy_location(ast.UnaryOp(ast.Not(), comparison), match) if is_other else comparison
        )
        if not self.depends_on_rank(ast.copy_location(comparison, match)):
            return None
        other_bodies = [s for c in match.cases if c is not case for s in c.body]
        return self._choice(case, test, case.body, other_bodies, at=match)

    def _choice(
        self,
        guarded: ast.AST,
        test: ast.expr,
        body: Sequence[ast.stmt],
        orelse: Sequence[ast.stmt],
        at: ast.AST | None = None,
    ) -> ast.If:
        """Return a condition on what it guards as a statement at the same place."""
        if guarded not in self._choices:
            place = guarded if at is None else at
            statement = ast.If(test, list(body), list(orelse))
            self._choices[guarded] = ast.copy_location(statement, place)
            # A statement is looked up in its block; what is none stands where its expression does.
            self.parents[statement] = place if isinstance(place, ast.stmt) else self.parents[place]
        return self._choices[guarded]

    def _exit_condition(self, block: list[ast.stmt]) -> ast.If | None:
        """Return the first ``if`` of a block by which some ranks leave it."""
        if id(block) not in self._exit_conditions:
            ifs = (s for s in block if isinstance(s, ast.If))
            condition = next(
                (s for s in ifs if leaves_silently(s.body) and self.depends_on_rank(s.test)), None
            )
            self._exit_conditions[id(block)] = condition
        return self._exit_conditions[id(block)]

    def depends_on_rank(self, test: ast.expr) -> bool:
        """Return True if the condition asks which rank this process is, not how many there are."""
        if test not in self._rank_tests:
            self._rank_tests[test] = self._test_asks_rank(test)
        return self._rank_tests[test]

    def _test_asks_rank(self, test: ast.expr) -> bool:
        if isinstance(test, ast.BoolOp):
            return any(map(self.depends_on_rank, test.values))
        text = _OPTION.sub("", ast.unparse(test))
        is_named_rank = bool(_RANK.search(text)) and not re.fullmatch(
            r"[\w.]*(?:rank|RANK)[\w.]* (?:!=|>=|>|is not|is|==) (?:-1|None)", text
        )
        return is_named_rank or self.ranks.depends_on_rank(test)

    def is_after(self, node: ast.AST, condition: ast.If) -> bool:
        """Return True if the node stands behind the ``if``, through which the other ranks leave."""
        enclosing = {node, *self.ancestors(node)}
        return condition not in enclosing and not any(
            self._choices.get(a) is condition for a in enclosing
        )

    def reached_where(self, node: ast.AST, condition: ast.If) -> str:
        """Return the condition under which a node is reached, for its ``rank_condition``."""
        test, enclosing = condition.test, [node, *self.ancestors(node)]
        otherwise = [
            *condition.orelse,
            *(s.value for s in condition.orelse if isinstance(s, ast.Expr)),
        ]
        if not self.is_after(node, condition) and not any(n in otherwise for n in enclosing):
            return _short_text(test)
        return _short_text(negated(test), test)

    def statements_after(self, condition: ast.stmt) -> list[ast.stmt]:
        """Return the statements that follow a statement, to the end of its function."""
        statements: list[ast.stmt] = []
        child: ast.AST = condition
        for ancestor in self.ancestors(condition):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(ancestor, field, None)
                if isinstance(block, list) and child in block:
                    statements += block[block.index(child) + 1 :]
            if isinstance(ancestor, (ast.FunctionDef, ast.AsyncFunctionDef)):
                break
            child = ancestor
        return statements

    def name_uses(self, function: Function) -> list[ast.AST]:
        """Return the places where a function is named: of a constructor by its class, of a method as one of
        an object that may be of its class."""
        owner = self.parents.get(function)
        if not isinstance(owner, ast.ClassDef):
            return list(self._loaded_names.get(function.name, ()))
        if function.name == "__init__":
            names = self._loaded_names.get(owner.name, ())
            return [n for n in names if not isinstance(self.parents[n], (ast.arg, ast.AnnAssign))]
        named = self._loaded_attributes.get(function.name, ())
        return [a for a in named if self._may_be_of(a.value, owner)]

    def _may_be_of(self, receiver: ast.expr, owner: ast.ClassDef) -> bool:
        """Return False if what stands before the dot is certainly no object of a class."""
        if isinstance(receiver, ast.Name) and receiver.id == "self":
            holder = next(
                (a for a in self.ancestors(receiver) if isinstance(a, ast.ClassDef)), None
            )
            name = holder.name if holder is not None else ""
            related = self.derived_classes.get(owner.name, []), self.derived_classes.get(name, [])
            return holder is owner or name in related[0] or owner.name in related[1]
        text = full_name(receiver, {})
        if text.partition(".")[0] in self.names:
            return False
        made_by = self.assigned.get(text, owner.name)
        return made_by == owner.name or made_by in self._functions

    @cached_property
    def set_attributes(self) -> frozenset[str]:
        """Names of the attributes that are set on objects other than ``self``."""
        return frozenset(
            n.attr
            for n in self.parents
            if isinstance(n, ast.Attribute)
            and isinstance(n.ctx, ast.Store)
            and ast.unparse(n.value) != "self"
        )

    @cached_property
    def changed_objects(self) -> frozenset[str]:
        """Variables whose entries the script sets, or of which it calls a method."""
        return changed_names(self.tree)

    @cached_property
    def classes(self) -> dict[str, ast.ClassDef]:
        """The classes that the script defines, by their names."""
        return {n.name: n for n in self.parents if isinstance(n, ast.ClassDef)}

    @cached_property
    def derived_classes(self) -> dict[str, list[str]]:
        """The classes that name another as their base, by that base."""
        derived: dict[str, list[str]] = {}
        for name, node in self.classes.items():
            for base in node.bases:
                derived.setdefault(ast.unparse(base), []).append(name)
        return derived

    @cached_property
    def class_bodies(self) -> dict[str, list[ast.stmt]]:
        """The statements of each class by its name."""
        return {name: node.body for name, node in self.classes.items()}

    @cached_property
    def _loaded_attributes(self) -> dict[str, list[ast.Attribute]]:
        loaded: dict[str, list[ast.Attribute]] = {}
        for node in self.parents:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                loaded.setdefault(node.attr, []).append(node)
        return loaded

    @cached_property
    def _loaded_names(self) -> dict[str, list[ast.Name]]:
        loaded: dict[str, list[ast.Name]] = {}
        for node in self.parents:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                loaded.setdefault(node.id, []).append(node)
        return loaded

    def source_line(self, node: ast.AST) -> str:
        """Return the first source line of a node, without its indentation."""
        line = getattr(node, "lineno", 0)
        return self.lines[line - 1].strip()[:120] if 0 < line <= len(self.lines) else ""

    def place_of(self, node: ast.AST) -> Place:
        """Return the position where the node begins."""
        line = getattr(node, "lineno", 0)
        return Place(
            file=self.file,
            line=line,
            column=column_of(self.lines, line, getattr(node, "col_offset", 0)) if line else 0,
        )

    def evidence_for(self, node: ast.AST) -> Evidence:
        """Return the node's line and its position."""
        return Evidence(self.source_line(node), str(self.place_of(node)))


def _short_text(test: ast.expr, denied: ast.expr | None = None) -> str:
    """Return the text of a condition; ``denied`` is that of which it is the opposite."""
    text = ast.unparse(test)
    if denied is not None and isinstance(test, ast.UnaryOp) and not isinstance(denied, ast.UnaryOp):
        denied_text = ast.unparse(denied)
        return f"not ({denied_text if len(denied_text) <= 60 else denied_text[:59] + '…'})"
    return text if len(text) <= 60 else text[:59] + "…"


def _is_value(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchValue)


def leaves_block(body: list[ast.stmt]) -> bool:
    """Return True if a block ends by going elsewhere."""
    return bool(body) and isinstance(body[-1], (ast.Return, ast.Continue, ast.Break, ast.Raise))


def leaves_silently(body: list[ast.stmt]) -> bool:
    """Return True if a block goes elsewhere and the program goes on: an exception ends it, and says so."""
    return (leaves_block(body) and not isinstance(body[-1], ast.Raise)) or ends_program(body)


def ends_program(body: list[ast.stmt]) -> bool:
    """Return True if a block ends the program as if it had succeeded: ``sys.exit()``, ``sys.exit(0)``."""
    call = body[-1].value if body and isinstance(body[-1], ast.Expr) else None
    if not isinstance(call, ast.Call) or call.keywords or len(call.args) > 1:
        return False
    if ast.unparse(call.func) not in ("sys.exit", "exit", "quit", "os._exit"):
        return False
    code = call.args[0] if call.args else ast.Constant(None)
    return isinstance(code, ast.Constant) and code.value in (0, None)


def call_argument(call: ast.Call, name: str, position: int = -1) -> ast.expr | None:
    """Return an argument by its name, or by its position if it has one; None if it is not passed."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if 0 <= position < len(call.args):
        return call.args[position]
    return None


@lru_cache(maxsize=4)
def read_script(facts: ScriptFacts) -> Script:
    """Return the script, parsed once for all rules.

    Raises:
        SyntaxError: it does not parse; scripts that do not are dropped when they are collected.
    """
    return Script(facts)
