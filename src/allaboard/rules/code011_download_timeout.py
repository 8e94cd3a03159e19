"""One rank downloads, prepares or sleeps while the others wait, and their timeout is short.

## Why it matters
The barrier's timeout is that of the group. If the download takes longer, the waiting ranks fail and blame
the network. On the second run it works, since the files are there; on new hosts it fails again.

The init has the same timeout: what one rank does before it, the others wait for in it. The Trainer of
transformers lets rank 0 run what is in `main_process_first` while the others wait, 30 minutes unless
`ddp_timeout` says more.

## What to do
Give the group a timeout that outlasts the work, or do it before the job starts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.command_line import option_of
from allaboard.formats.python.evaluation import evaluate, integer
from allaboard.formats.python.flow.execution_order import runs_before
from allaboard.formats.python.resolution import resolve, resolver_of
from allaboard.formats.python.script_ast import Script, call_argument, read_script

SHORT_TIMEOUT_S = 300.0
"""A timeout up to this many seconds counts as short for a download, or for work on a whole dataset."""

DEFAULT_TIMEOUT_S = 1800.0
"""What the store and gloo wait if no timeout is given (torch/distributed/constants.py)."""
JAX_INIT_TIMEOUT_S = 300.0
"""What jax.distributed.initialize waits if no initialization_timeout is given."""
_INITS = ("torch.distributed.init_process_group", "jax.distributed.initialize")

_UNIT_SECONDS = {
    "seconds": 1.0,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86400.0,
    "milliseconds": 1e-3,
}


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "init_process_group" in facts.source or "distributed.initialize" in facts.source:
        yield from _work_of_one_rank(read_script(facts))
    elif "main_process_first" in facts.source:
        yield from _prepared_by_trainer(read_script(facts))


def _work_of_one_rank(script: Script) -> Iterator[Claim]:
    """Report what one rank does while the others wait in a barrier or in the init."""
    inits = script.calls_of(*_INITS)
    if not inits:
        return
    timeout, is_stated = _timeout_seconds(script, inits[0])
    waits_in_barrier = bool(script.calls_of("torch.distributed.barrier"))
    for name, call in script.calls:
        before_init = runs_before(script, call, inits[0])
        is_after = call.lineno > inits[0].lineno or runs_before(script, inits[0], call)
        if not before_init and not (waits_in_barrier and is_after):
            continue
        slept = integer(script, call.args[0]) if name == "time.sleep" and call.args else None
        work = f"sleeps {slept} s" if slept is not None and slept > timeout else ""
        if is_stated and timeout <= SHORT_TIMEOUT_S:
            work = "downloads" if _fetches(name, call) else _prepares(name, call) or work
        if not work or not (script.rank_condition(call) or _comes_first(script, call)):
            continue
        where = script.call_name(inits[0].func).rpartition(".")[2] if before_init else "a barrier"
        is_jax = script.call_name(inits[0].func).startswith("jax")
        seconds = max(1800, 2 * (slept or 0))
        yield Claim(
            summary=f"one rank {work} while the others wait in {where} of {timeout:.0f} s",
            evidence=(script.evidence_for(call), script.evidence_for(inits[0])),
            fix=f"jax.distributed.initialize(…, initialization_timeout={seconds})"
            if is_jax
            else f"init_process_group(…, timeout=timedelta(minutes={-(-seconds // 60)}))",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _comes_first(script: Script, node: ast.AST) -> bool:
    """Return True inside of the script's own `with main_process_first():`, whatever its name."""
    for above in script.ancestors(node):
        for item in above.items if isinstance(above, ast.With) else ():
            context = item.context_expr
            manager = resolver_of(script).called(context) if isinstance(context, ast.Call) else None
            if manager is None:
                continue
            barriers = [n for n in ast.walk(manager) if isinstance(n, ast.Call)]
            barriers = [n for n in barriers if script.call_name(n.func).endswith(".barrier")]
            gives_way = [n for n in ast.walk(manager) if isinstance(n, ast.Yield)]
            early = [b for b in barriers if gives_way and b.lineno < gives_way[0].lineno]
            if any(isinstance(a, ast.If) for b in early for a in script.ancestors(b)):
                return True
    return False


def _fetches(name: str, call: ast.Call) -> bool:
    return "download" in name.lower() or any(
        k.arg == "download" and isinstance(k.value, ast.Constant) and k.value.value is True
        for k in call.keywords
    )


def _prepares(name: str, call: ast.Call) -> str:
    """Return the verb for work on a whole dataset; "" for any other call."""
    if name.startswith("datasets.") and name.rpartition(".")[2] == "load_dataset":
        return "loads a dataset"
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    processes = any(k.arg in ("num_proc", "batched") for k in call.keywords)
    return "prepares the data" if method in ("map", "filter") and processes else ""


def _timeout_seconds(script: Script, init: ast.Call) -> tuple[float, bool]:
    """Return how long the other ranks wait in the init or a barrier, and whether the script states it."""
    if script.call_name(init.func).startswith("jax"):
        stated = integer(script, call_argument(init, "initialization_timeout", 5))
        return (stated, True) if stated is not None else (JAX_INIT_TIMEOUT_S, False)
    argument = call_argument(init, "timeout", 2)
    if argument is None:
        return DEFAULT_TIMEOUT_S, False
    seconds = _timedelta_seconds(script, resolve(script, argument))
    return (seconds, True) if seconds is not None else (float("inf"), False)


def _prepared_by_trainer(script: Script) -> Iterator[Claim]:
    """Report data that the Trainer's rank 0 prepares first, within the default timeout."""
    arguments = [
        call
        for name, call in script.calls
        if name.rpartition(".")[2] in ("TrainingArguments", "Seq2SeqTrainingArguments")
        and name.startswith("transformers.")
    ]
    # Where they come from the command line, the timeout may, too.
    if not arguments or any(k.arg in ("ddp_timeout", None) for c in arguments for k in c.keywords):
        return
    for node in ast.walk(script.tree):
        if not isinstance(node, ast.With):
            continue
        if "main_process_first" not in ast.unparse(node.items[0]):
            continue
        work = next(
            (
                n
                for statement in node.body
                for n in ast.walk(statement)
                if isinstance(n, ast.Call)
                and isinstance(n.func, ast.Attribute)
                and n.func.attr in ("map", "filter")
            ),
            None,
        )
        if work is not None:
            yield Claim(
                summary="rank 0 prepares the data first, and the others wait for it in a barrier: "
                "30 minutes at most",
                evidence=(script.evidence_for(work), script.evidence_for(arguments[0])),
                fix=f"{ast.unparse(arguments[0].func)}(…, ddp_timeout=7200)",
                severity=Severity.INFO,
                certainty=Certainty.LIKELY,
                where=script.place_of(node),
            )
            return


def _timedelta_seconds(script: Script, node: ast.expr | None) -> float | None:
    """Return the length in seconds of a literal timedelta, or None."""
    if not isinstance(node, ast.Call) or not script.call_name(node.func).endswith("timedelta"):
        return None
    total = 0.0
    for keyword in node.keywords:
        option = option_of(script, keyword.value)
        value = evaluate(script, option.default if option is not None else keyword.value)
        if keyword.arg not in _UNIT_SECONDS or not isinstance(value, (int, float)):
            return None
        total += value * _UNIT_SECONDS[keyword.arg]
    return total if node.keywords else None


_SOURCE = """import torch.distributed as dist
from datetime import timedelta
dist.init_process_group("gloo", timeout=timedelta(seconds=30))
if rank == 0:
    MNIST("data", download=True)
dist.barrier()
"""
_MAPPED = """import torch.distributed as dist
from datetime import timedelta
dist.init_process_group("nccl", timeout=timedelta(minutes=5))
if rank == 0:
    corpus.map(encode, num_proc=8).save_to_disk("tokens")
dist.barrier()
"""
_SLEEP = """import time
import torch.distributed as dist
if rank == 0:
    time.sleep(SECONDS)
dist.init_process_group("gloo")
"""
_TRAINER = """from transformers import Trainer, TrainingArguments
args = TrainingArguments('out')
with args.main_process_first():
    text = load().map(encode)
Trainer(args=args, train_dataset=text).train()
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "one rank maps a dataset, with a timeout of 5 minutes": (
            ScriptFacts(source=_MAPPED),
            "one rank prepares the data while the others wait in a barrier of 300 s",
        ),
        "one rank downloads, with a timeout of 30 seconds": (
            ScriptFacts(source=_SOURCE),
            "one rank downloads while the others wait in a barrier of 30 s",
        ),
        "one rank sleeps 45 minutes before `init_process_group`": (
            ScriptFacts(source=_SLEEP.replace("SECONDS", "45 * 60")),
            "one rank sleeps 2700 s while the others wait in init_process_group of 1800 s",
        ),
        "one process sleeps 10 minutes before `jax.distributed.initialize`": (
            ScriptFacts(
                source="import jax, time\nif args.process_id == 0:\n    time.sleep(600)\n"
                "jax.distributed.initialize(args.where, 2, args.process_id)\n"
            ),
            "one rank sleeps 600 s while the others wait in initialize of 300 s",
        ),
        "data is prepared in the Trainer's `main_process_first` with the default timeout": (
            ScriptFacts(source=_TRAINER),
            "rank 0 prepares the data first, and the others wait for it in a barrier: 30 minutes at most",
        ),
    },
    silent_on={
        "one rank maps a dataset, with the default timeout": ScriptFacts(
            source=_MAPPED.replace(", timeout=timedelta(minutes=5)", "")
        ),
        "all ranks map the dataset": ScriptFacts(
            source=_MAPPED.replace("if rank == 0:", "if True:")
        ),
        "one rank downloads, with a timeout of half an hour": ScriptFacts(
            source=_SOURCE.replace("seconds=30", "minutes=30")
        ),
        "one rank downloads, with the default timeout": ScriptFacts(
            source=_SOURCE.replace(", timeout=timedelta(seconds=30)", "")
        ),
        "one rank sleeps 30 seconds before `init_process_group`": ScriptFacts(
            source=_SLEEP.replace("SECONDS", "30")
        ),
        "all ranks sleep for an hour": ScriptFacts(
            source=_SLEEP.replace("SECONDS", "3600").replace("if rank == 0:\n    ", "")
        ),
        "data is prepared in `main_process_first` with a `ddp_timeout` of two hours": ScriptFacts(
            source=_TRAINER.replace("'out'", "'out', ddp_timeout=7200")
        ),
        "the Trainer's arguments come from the command line, perhaps with a timeout": ScriptFacts(
            source=_TRAINER.replace("TrainingArguments('out')", "parser.parse_args()")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
