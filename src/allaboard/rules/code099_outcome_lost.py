"""What a collective brings is thrown away.

## Why it matters
PyTorch's collectives change their argument in place, and return None. What they write into a list or a tensor
that was made for the call alone (`broadcast_object_list([cfg], src=0)`, `all_reduce(torch.tensor(loss))`) is
gone with it: each rank goes on with the value that it had. `loss = dist.all_reduce(loss)` leaves None. Other
libraries return the outcome, and change nothing: there, a call whose result nobody takes does nothing.

## What to do
Keep what the collective writes to: `box = [cfg]; dist.broadcast_object_list(box, src=0); cfg = box[0]`. Take
what the others return: `loss = hvd.allreduce(loss)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_IN_PLACE = {
    **dict.fromkeys(("all_reduce", "broadcast", "reduce", "recv"), ("tensor", 0)),
    "broadcast_object_list": ("object_list", 0),
    "scatter_object_list": ("scatter_object_output_list", 0),
    "all_gather": ("tensor_list", 0),
    "all_gather_object": ("object_list", 0),
}
"""Functions of torch.distributed with the argument that they write to: its name and position."""
_RETURNING = frozenset(
    (
        *(
            f"horovod.torch.{n}"
            for n in ("allreduce", "allgather", "broadcast", "broadcast_object")
        ),
        *(f"horovod.tensorflow.{n}" for n in ("allreduce", "allgather", "broadcast")),
        *(f"accelerate.Accelerator().{n}" for n in ("gather", "gather_for_metrics", "reduce")),
        *(f"accelerate.utils.{n}" for n in ("gather", "gather_object", "reduce")),
        *(f"mpi4py.MPI.COMM_WORLD.{n}" for n in ("bcast", "allreduce", "allgather")),
        *(
            f"jax.experimental.multihost_utils.{n}"
            for n in ("process_allgather", "broadcast_one_to_all")
        ),
    )
)
"""Collectives that return their outcome, and change none of their arguments."""
_FROM_ONE = ("broadcast", "broadcast_object_list")
"""Functions that bring the value of one rank, which loses nothing by them."""
_COPIES = ("torch.tensor", "torch.stack", "torch.cat", "torch.as_tensor", "torch.FloatTensor")
_NONE = (
    "all_reduce",
    "broadcast",
    "all_gather",
    "broadcast_object_list",
    "all_gather_object",
    "reduce",
)
"""Functions that return None unless they are asynchronous."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if not any(
        word in facts.source for word in ("torch", "horovod", "mpi4py", "accelerate", "jax")
    ):
        return
    script = read_script(facts)
    for name, call in script.calls:
        statement = script.parents.get(call)
        module, _, short = name.rpartition(".")
        if name in _RETURNING and isinstance(statement, ast.Expr):
            if any(map(_has_variable, call.args)) and not _is_to_fail(script, statement):
                yield _claim(
                    script,
                    call,
                    f"{short} returns what it brings, and nothing takes it here: the argument stays as it is",
                    f"{_argument_text(call)} = {ast.unparse(call)}",
                )
        elif module == "torch.distributed" and short in _IN_PLACE:
            yield from _in_place(script, call, short, statement)


def _in_place(
    script: Script, call: ast.Call, short: str, statement: ast.AST | None
) -> Iterator[Claim]:
    argument = call_argument(call, *_IN_PLACE[short])
    if argument is None or any(k.arg in ("async_op", None) for k in call.keywords):
        return
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    passed = ast.unparse(argument)
    if short in _NONE and isinstance(target, (ast.Name, ast.Attribute)):
        if _is_used(script, target, statement) and len(call.args) < 4:
            yield _claim(
                script,
                call,
                f"{short} returns None and changes {passed[:40]} in place: {ast.unparse(target)} is None",
                ast.unparse(call),
            )
    elif isinstance(statement, ast.Expr) and _is_temporary(script, argument):
        if short in _FROM_ONE and script.rank_condition(call) is not None:
            return  # the rank from which it comes keeps its own value
        yield _claim(
            script,
            call,
            f"{short} writes what it brings into {passed[:40]}, which is made for this call alone: it is "
            "lost, and each rank goes on with its own value",
            f"box = {passed}; {ast.unparse(call.func)}(box, …)   # then take the value from box",
        )


def _has_variable(argument: ast.expr) -> bool:
    """Return True if a variable is in an argument, other than as what makes a tensor of literals."""
    makers = {
        n
        for call in ast.walk(argument)
        if isinstance(call, ast.Call)
        for part in (call.func, *(k.value for k in call.keywords))
        for n in ast.walk(part)
        if isinstance(part, ast.Attribute)
        and isinstance(part.value, ast.Name)
        and part.value.id in ("torch", "tf", "np", "numpy", "jnp")
    }
    named = (n for n in ast.walk(argument) if isinstance(n, (ast.Name, ast.Attribute)))
    return any(n not in makers for n in named)


def _is_to_fail(script: Script, statement: ast.stmt) -> bool:
    """Return True for a call of a test that is to raise: before `assert False`, or under `raises`."""
    parent = script.parents.get(statement)
    if isinstance(parent, (ast.With, ast.AsyncWith)):
        return any("raises" in ast.unparse(i.context_expr).lower() for i in parent.items)
    block = parent.body if isinstance(parent, ast.Try) else []
    following = block[block.index(statement) + 1 :] if statement in block else []
    return any(isinstance(s, ast.Assert) or "fail(" in ast.unparse(s) for s in following[:1])


def _is_temporary(script: Script, argument: ast.expr) -> bool:
    """Return True for a list or a copy of a variable that nothing but the call holds."""
    if isinstance(argument, ast.List):
        return any(isinstance(e, (ast.Name, ast.Attribute)) for e in argument.elts) and not any(
            script.ranks.rank_kind(e) for e in argument.elts
        )
    if isinstance(argument, ast.BinOp):
        return isinstance(argument.op, (ast.Div, ast.Mult))
    if not isinstance(argument, ast.Call):
        return False
    if isinstance(argument.func, ast.Attribute) and argument.func.attr in ("clone", "cuda", "to"):
        inner = argument.func.value
        if argument.func.attr == "clone":
            return True
        return isinstance(inner, ast.Call) and _is_temporary(script, inner)
    is_copy = script.call_name(argument.func) in _COPIES
    return is_copy and any(
        isinstance(n, (ast.Name, ast.Attribute)) for a in argument.args for n in ast.walk(a)
    )


def _is_used(script: Script, target: ast.Name | ast.Attribute, statement: ast.AST | None) -> bool:
    """Return True if the variable is read after the statement in the same function."""
    scope: ast.AST = script.enclosing_function(target) or script.tree
    text, line = ast.unparse(target), getattr(statement, "lineno", 0)
    return any(
        isinstance(n, (ast.Name, ast.Attribute))
        and isinstance(n.ctx, ast.Load)
        and n.lineno > line
        and ast.unparse(n) == text
        and not _is_asked(script, n)
        for n in ast.walk(scope)
    )


def _is_asked(script: Script, node: ast.AST) -> bool:
    """Return True if the use only asks for a handle: `work.wait()`, `if work is not None`."""
    parent = script.parents.get(node)
    is_handle = isinstance(parent, ast.Attribute) and parent.attr in ("wait", "is_completed")
    return is_handle or isinstance(parent, (ast.Compare, ast.If, ast.Return))


def _argument_text(call: ast.Call) -> str:
    return ast.unparse(call.args[0])[:40] if call.args else "value"


def _claim(script: Script, call: ast.Call, summary: str, fix: str) -> Claim:
    return Claim(
        summary=summary,
        evidence=(script.evidence_for(call),),
        fix=fix,
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(call),
    )


_HEAD = "import torch\nimport torch.distributed as dist\n"
_BOX = _HEAD + "dist.broadcast_object_list([run_dir], src=0)\nprint(run_dir)\n"
_COPY = _HEAD + "def mean(loss):\n    dist.all_reduce(torch.tensor(loss))\n    return loss\n"
_NOTHING = _HEAD + "def mean(loss):\n    loss = dist.all_reduce(loss)\n    print(loss.item())\n"
_HOROVOD = "import horovod.torch as hvd\nhvd.allreduce(loss, name='loss')\nprint(loss)\n"

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "an object is broadcast in a list that is made for the call": (
            ScriptFacts(source=_BOX),
            "broadcast_object_list writes what it brings into [run_dir], which is made for this call alone: "
            "it is lost, and each rank goes on with its own value",
        ),
        "a copy of the loss is reduced": (
            ScriptFacts(source=_COPY),
            "all_reduce writes what it brings into torch.tensor(loss), which is made for this call alone: it "
            "is lost, and each rank goes on with its own value",
        ),
        "the loss is replaced by what `all_reduce` returns": (
            ScriptFacts(source=_NOTHING),
            "all_reduce returns None and changes loss in place: loss is None",
        ),
        "nothing takes what Horovod's allreduce returns": (
            ScriptFacts(source=_HOROVOD),
            "allreduce returns what it brings, and nothing takes it here: the argument stays as it is",
        ),
    },
    silent_on={
        "the list is kept": ScriptFacts(
            source=_HEAD + "box = [run_dir]\ndist.broadcast_object_list(box, src=0)\n"
        ),
        "the rank from which the object comes": ScriptFacts(
            source=_HEAD + "if dist.get_rank() == src:\n"
            "    dist.broadcast_object_list([parts], src=src)\nelse:\n    box = [None]\n"
            "    dist.broadcast_object_list(box, src=src)\n    parts = box[0]\n"
        ),
        "a tensor that stands for a barrier": ScriptFacts(
            source=_HEAD + "dist.all_reduce(torch.zeros(1).cuda())\n"
        ),
        "the tensor itself, without its history": ScriptFacts(
            source=_COPY.replace("torch.tensor(loss)", "loss.detach()")
        ),
        "the handle of an asynchronous reduction": ScriptFacts(
            source=_NOTHING.replace("(loss)", "(loss, async_op=True)", 1)
            .replace("loss = dist.all_reduce(loss)", "work = dist.all_reduce(loss, async_op=True)")
            .replace("print(loss.item())", "work.wait()")
        ),
        "a handle that is there only if the reduction is asynchronous": ScriptFacts(
            source=_NOTHING.replace("loss = dist", "work = dist").replace(
                "print(loss.item())", "work.wait()"
            )
        ),
        "Horovod's reduction in place": ScriptFacts(
            source=_HOROVOD.replace("allreduce", "allreduce_")
        ),
        "a test in which Horovod's allreduce is to raise": ScriptFacts(
            source="import horovod.torch as hvd\ntry:\n    hvd.allreduce(loss)\n"
            "    assert False, 'no error'\nexcept ValueError:\n    pass\n"
        ),
        "Horovod's allreduce of a literal, to warm up": ScriptFacts(
            source="import torch\nimport horovod.torch as hvd\n"
            "hvd.allreduce(torch.tensor([1.0], dtype=torch.float32), name='warm-up')\n"
        ),
        "what Horovod's allreduce returns is taken": ScriptFacts(
            source=_HOROVOD.replace("hvd.allreduce", "loss = hvd.allreduce")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
