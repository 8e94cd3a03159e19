"""A lock that ranks share is held across a collective, or is taken in every step and never released.

## Why it matters
The rank that holds a lock waits in the collective for the others; they wait for the lock before they come
to the collective. Nobody moves, and no timeout names the lock. That is certain for locks between processes:
`multiprocessing.Lock`, a FileLock, `fcntl.flock`. A lock within the process stops the rank itself if it is
taken again without having been released.

## What to do
Release the lock before the collective. Better still, write `with lock:` around only the lines that need the
lock.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.call_graph import call_graph_of
from allaboard.formats.python.collective_calls import COLLECTIVE_CALLS, JOINT_CONSTRUCTORS
from allaboard.formats.python.resolution import receiver_call_name, resolve, resolver_of
from allaboard.formats.python.script_ast import Script, read_script

_SHARED_LOCK = re.compile(
    r"(?:torch\.)?multiprocessing\.(?:(?:get_context|Manager)\(\)\.)?(?:Lock|RLock|Semaphore|BoundedSemaphore)|filelock\.\w*FileLock"
    r"|portalocker\.Lock|.*\.InterProcessLock"
)
_ANY_LOCK = re.compile(rf"{_SHARED_LOCK.pattern}|threading\.(?:Lock|Semaphore|BoundedSemaphore)")
_STEP_CALLS = ("backward",)


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "ock" not in facts.source or not re.search(r"acquire\(|flock\(|with ", facts.source):
        return
    script = read_script(facts)
    for call in _meeting_calls(script):
        holder = _enclosing_lock(script, call) or _acquired_before(script, call)
        if holder is not None and script.rank_condition(holder) is None:
            yield Claim(
                summary=f"the lock is held while this rank waits for the others in "
                f"{script.call_name(call.func).rpartition('.')[2]}: they wait for the lock",
                evidence=(script.evidence_for(holder), script.evidence_for(call)),
                fix=f"{script.source_line(call)}   # after the lock is released",
                severity=Severity.ERROR,
                certainty=Certainty.LIKELY,
                where=script.place_of(holder),
            )
            return
    yield from _never_released(script, facts.source)


def _meeting_calls(script: Script) -> Iterator[ast.Call]:
    reach = call_graph_of(script)
    for name, call in script.calls:
        steps = isinstance(call.func, ast.Attribute) and call.func.attr in _STEP_CALLS
        entered = reach.certain_calls(call, COLLECTIVE_CALLS - JOINT_CONSTRUCTORS)
        if (
            name in COLLECTIVE_CALLS
            or entered
            or (steps and "DistributedDataParallel" in str(script.names))
        ):
            yield call


def _is_lock(script: Script, node: ast.expr, pattern: re.Pattern[str]) -> bool:
    """Return True for a lock that the script makes, or a variable that holds one."""
    if isinstance(node, ast.Call):
        return pattern.fullmatch(receiver_call_name(script, node)) is not None
    made_by = script.assigned.get(ast.unparse(node), "")
    if not made_by and isinstance(node, (ast.Name, ast.Attribute)):
        value = resolve(script, node)
        if isinstance(value, ast.Call):
            return _is_lock(script, value, pattern)
        passed = isinstance(value, ast.Name) and script.ranks.parameter_scope(value) is not None
        # A lock that a process gets from whoever starts it is shared with the others.
        return passed and _is_lock_of_processes(script, value)
    return pattern.fullmatch(made_by) is not None


def _is_lock_of_processes(script: Script, name: ast.expr) -> bool:
    is_named_lock = re.search(r"lock\Z|mutex\Z", ast.unparse(name), re.I) is not None
    modules = set(script.names.values())
    return (
        is_named_lock
        and any("multiprocessing" in module for module in modules)
        and not any(module.startswith(("threading", "asyncio")) for module in modules)
    )


def _enclosing_lock(script: Script, call: ast.AST) -> ast.AST | None:
    """Return the `with lock:` around a call, if the lock is one between processes."""
    for above in script.ancestors(call):
        if isinstance(above, ast.With) and any(
            _is_lock(script, item.context_expr, _SHARED_LOCK)
            or _acquires(script, item.context_expr)
            for item in above.items
        ):
            return above
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
    return None


def _acquires(script: Script, context: ast.expr) -> bool:
    """Return True for a context manager of the script that holds a lock between processes."""
    manager = resolver_of(script).called(context) if isinstance(context, ast.Call) else None
    if manager is None or not isinstance(manager, ast.FunctionDef):
        return False
    gives_way = next((s for s in ast.walk(manager) if isinstance(s, ast.Yield)), None)
    return (
        gives_way is not None
        and (_enclosing_lock(script, gives_way) or _acquired_before(script, gives_way)) is not None
    )


def _acquired_before(script: Script, call: ast.AST) -> ast.AST | None:
    """Return the acquisition in an enclosing block that is not released before the call."""
    child = call
    for above in script.ancestors(call):
        block = getattr(above, "body", None)
        if isinstance(block, list) and child in block:
            held: dict[str, ast.AST] = {}
            for statement in block[: block.index(child)]:
                lock, action = _lock_action(script, statement)
                if action == "acquire":
                    held[lock] = statement
                elif action == "release":
                    held.pop(lock, None)
                elif any(f"{name}.release" in ast.unparse(statement) for name in held):
                    held.clear()
            if held:
                return next(iter(held.values()))
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        child = above
    return None


def _lock_action(script: Script, statement: ast.stmt) -> tuple[str, str]:
    """Return the lock between processes that a statement acquires or releases, and which; "" for neither."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return "", ""
    if ast.unparse(call.func) == "fcntl.flock" and len(call.args) == 2:
        action = "release" if "LOCK_UN" in ast.unparse(call.args[1]) else "acquire"
        exclusive = "LOCK_EX" in ast.unparse(call.args[1]) or action == "release"
        return (ast.unparse(call.args[0]), action) if exclusive else ("", "")
    if call.func.attr in ("acquire", "release") and _is_lock(script, call.func.value, _SHARED_LOCK):
        return ast.unparse(call.func.value), call.func.attr
    return "", ""


def _repeating_loop(script: Script, node: ast.AST, depth: int = 3) -> ast.AST | None:
    """Return the loop that repeats a node in each turn, in its function or where that function is called."""
    for above in script.ancestors(node):
        if isinstance(above, (ast.If, ast.Match, ast.ExceptHandler)):
            return None
        if isinstance(above, (ast.For, ast.While)):
            return above
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)):
            uses = script.name_uses(above) if depth else []
            loops = (_repeating_loop(script, use, depth - 1) for use in uses)
            return next((loop for loop in loops if loop is not None), None)
    return None


def _never_released(script: Script, source: str) -> Iterator[Claim]:
    """Report a lock that a training loop acquires, and that the script never releases."""
    if "release(" in source or not script.is_distributed:
        return
    for call in script.method_calls("acquire"):
        lock = call.func.value if isinstance(call.func, ast.Attribute) else None
        if lock is None or not _is_lock(script, lock, _ANY_LOCK):
            continue
        if call.args or call.keywords:  # it may give up
            continue
        loop = _repeating_loop(script, call)
        if loop is None or not isinstance(script.parents.get(call), ast.Expr):
            continue
        if _is_assigned_in(loop, ast.unparse(lock)):
            continue  # each turn has a lock of its own
        yield Claim(
            summary=f"{ast.unparse(lock)} is acquired in every turn of a loop and never released: "
            "the second turn waits for ever",
            evidence=(script.evidence_for(call), script.evidence_for(loop)),
            fix=f"with {ast.unparse(lock)}:",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _is_assigned_in(loop: ast.AST, name: str) -> bool:
    targets = (t for n in ast.walk(loop) if isinstance(n, ast.Assign) for t in n.targets)
    return any(ast.unparse(target) == name for target in targets)


_HEAD = """import fcntl, threading
import multiprocessing as mp
import torch.distributed as dist
from filelock import FileLock
dist.init_process_group("gloo")
lock = mp.Lock()
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a barrier in a `with FileLock(...)` block": (
            ScriptFacts(
                source=_HEAD + "with FileLock('data.lock'):\n    build()\n    dist.barrier()\n"
            ),
            "the lock is held while this rank waits for the others in barrier: they wait for the lock",
        ),
        "an all_reduce between `lock.acquire()` and `lock.release()`": (
            ScriptFacts(source=_HEAD + "lock.acquire()\ndist.all_reduce(x)\nlock.release()\n"),
            "the lock is held while this rank waits for the others in all_reduce: they wait for the lock",
        ),
        "a barrier between `fcntl.flock` and the unlocking": (
            ScriptFacts(
                source=_HEAD + "fcntl.flock(f, fcntl.LOCK_EX)\nbuild()\ndist.barrier()\n"
                "fcntl.flock(f, fcntl.LOCK_UN)\n"
            ),
            "the lock is held while this rank waits for the others in barrier: they wait for the lock",
        ),
        "a lock that is acquired in every step and never released": (
            ScriptFacts(
                source=_HEAD + "own = threading.Lock()\nfor x in data:\n    own.acquire()\n"
                "    dist.all_reduce(x)\n"
            ),
            "own is acquired in every turn of a loop and never released: the second turn waits for ever",
        ),
    },
    silent_on={
        "a new lock in every step": ScriptFacts(
            source=_HEAD + "for x in data:\n    own = threading.Lock()\n    own.acquire()\n"
            "    dist.all_reduce(x)\n"
        ),
        "a lock that is acquired once, in the first step": ScriptFacts(
            source=_HEAD + "own = threading.Lock()\nfor i, x in enumerate(data):\n    if i == 0:\n"
            "        own.acquire()\n    dist.all_reduce(x)\n"
        ),
        "a barrier after the `with FileLock(...)` block": ScriptFacts(
            source=_HEAD + "with FileLock('data.lock'):\n    build()\ndist.barrier()\n"
        ),
        "a lock that is released before the barrier": ScriptFacts(
            source=_HEAD + "lock.acquire()\nbuild()\nlock.release()\ndist.barrier()\n"
        ),
        "a `threading.Lock`, which other ranks do not share": ScriptFacts(
            source=_HEAD + "own = threading.Lock()\nwith own:\n    dist.all_reduce(x)\n"
        ),
        "a lock that only one rank acquires": ScriptFacts(
            source=_HEAD + "if rank == 0:\n    lock.acquire()\n    build()\ndist.barrier()\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
