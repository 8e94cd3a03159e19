"""Every rank writes its checkpoint to one path.

## Why it matters
On a shared disk the ranks overwrite each other's file while another one is still writing it: it is pure
luck if the checkpoint loads. On separate disks it is N times the same work.

## What to do
In PyTorch, write under `if rank == 0:`, with a barrier after it. TensorFlow's MultiWorkerMirroredStrategy
wants every worker to save, each to a folder of its own. Under Horovod, only rank 0's session gets a
`checkpoint_dir`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_ONE_PROCESS = re.compile(r"standalone|single_(?:process|gpu)|no_dist")
_SEVERAL_PROCESSES = re.compile(
    r"\bdist(?:ributed)?\b|\bddp\b|is_initialized|multi_?(?:gpu|process)"
)
"""Match flags that say whether the job is distributed at all."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    yield from _models_of_keras(script)
    yield from _sessions_of_horovod(script)
    if script.uses_launching_library or not script.calls_of("torch.distributed.init_process_group"):
        return
    for call in script.calls_of("torch.save"):
        path = call_argument(call, "f", 1)
        if (
            path is None
            or not _is_same_on_all_ranks(path)
            or _is_reached_by_one_rank(script, call, 0)
        ):
            continue
        yield Claim(
            summary=f"every rank saves to {ast.unparse(path)[:60]}",
            evidence=(script.evidence_for(call),),
            fix=f"if dist.get_rank() == 0:\n    {script.source_line(call)}",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _models_of_keras(script: Script) -> Iterator[Claim]:
    """Report a model that all workers of MultiWorkerMirroredStrategy save to one folder."""
    if not any("MultiWorkerMirroredStrategy" in ast.unparse(s) for s in script.strategies):
        return
    trained = {
        ast.unparse(c.func.value)
        for c in script.method_calls("fit")
        if isinstance(c.func, ast.Attribute)
    }
    for call in script.method_calls("save"):
        path = call_argument(call, "filepath", 0)
        model = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if model not in trained or path is None or _is_reached_by_one_rank(script, call, 0):
            continue
        if not isinstance(path, ast.Constant):
            continue
        yield Claim(
            summary=f"every worker saves to {ast.unparse(path)[:60]}",
            evidence=(script.evidence_for(call), script.evidence_for(script.strategies[0])),
            fix=f"{model}.save({ast.unparse(path)} if task_id == 0 else tempfile.mkdtemp())"
            "   # all workers have to save",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _sessions_of_horovod(script: Script) -> Iterator[Claim]:
    """Report a session of TensorFlow 1 that writes checkpoints on every rank of Horovod."""
    if not any(name.startswith("horovod.") and name.endswith(".init") for name, _ in script.calls):
        return
    yield from _callbacks_of_horovod(script)
    for call in script.calls_of("tensorflow.train.MonitoredTrainingSession"):
        folder = call_argument(call, "checkpoint_dir")
        if not isinstance(folder, ast.Constant) or not folder.value:
            continue
        if _is_reached_by_one_rank(script, call, 0):
            continue
        yield Claim(
            summary=f"every rank saves to {ast.unparse(folder)[:60]}",
            evidence=(script.evidence_for(folder), script.evidence_for(call)),
            fix=f"checkpoint_dir={ast.unparse(folder)} if hvd.rank() == 0 else None",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(folder),
        )


def _callbacks_of_horovod(script: Script) -> Iterator[Claim]:
    """Report a ModelCheckpoint of Keras that every rank of Horovod has."""
    for name, call in script.calls:
        path = call_argument(call, "filepath", 0)
        if not name.endswith("keras.callbacks.ModelCheckpoint") or not isinstance(
            path, ast.Constant
        ):
            continue
        if _is_reached_by_one_rank(script, call, 0):
            continue
        yield Claim(
            summary=f"every rank saves to {ast.unparse(path)[:60]}",
            evidence=(script.evidence_for(call),),
            fix=f"if hvd.rank() == 0:\n    callbacks.append({ast.unparse(call)[:80]})",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _is_same_on_all_ranks(path: ast.expr) -> bool:
    """Return True if the path is certainly the same on all ranks."""
    for node in ast.walk(path):
        if isinstance(node, ast.Name):
            lowered = node.id.lower()
            if "epoch" not in lowered and "step" not in lowered:
                return False
        elif isinstance(node, (ast.Call, ast.Attribute)):
            return False
    return True


def _is_for_one_process(script: Script, node: ast.AST) -> bool:
    """Return True if the node is reached only where the job is not distributed."""
    child = node
    for above in script.ancestors(node):
        if isinstance(above, ast.If) and child is not above.test:
            text = ast.unparse(above.test)
            negated = text.startswith("not ") != (child in above.orelse)
            if _ONE_PROCESS.search(text) and not negated:
                return True
            if _SEVERAL_PROCESSES.search(text) and negated:
                return True
        child = above
    return False


def _is_reached_by_one_rank(script: Script, node: ast.AST, depth: int) -> bool:
    """Return True if only one rank gets here, in this function or where it is called."""
    if script.rank_condition(node) is not None or _is_for_one_process(script, node):
        return True
    outer = script.enclosing_function(node)
    if outer is None or depth > 4:
        return False
    uses = script.name_uses(outer)
    # Not called in this file, or a method of an object: its callers cannot be seen.
    if not uses or isinstance(script.parents.get(outer), ast.ClassDef):
        return True
    return any(_is_reached_by_one_rank(script, use, depth + 1) for use in uses)


_KERAS = (
    "import tensorflow as tf\nstrategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
    "with strategy.scope():\n    model = make()\nmodel.fit(data)\n"
)
_HOROVOD = (
    "import horovod.tensorflow as hvd\nimport tensorflow as tf\nhvd.init()\n"
    "with tf.train.MonitoredTrainingSession(checkpoint_dir=DIR) as s:\n    s.run(train)\n"
)
_HEAD = 'import torch\nimport torch.distributed as dist\ndist.init_process_group("gloo")\n'

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "every rank calls `torch.save` with the same path": (
            ScriptFacts(source=_HEAD + 'torch.save(model.state_dict(), "model.pt")\n'),
            "every rank saves to 'model.pt'",
        ),
        "every rank saves, under a condition that asks only whether the job is distributed": (
            ScriptFacts(
                source=_HEAD + "ready = dist.is_initialized()\nif ready:\n"
                '    torch.save(model.state_dict(), "model.pt")\n'
            ),
            "every rank saves to 'model.pt'",
        ),
        "every worker of MultiWorkerMirroredStrategy saves a Keras model to one path": (
            ScriptFacts(source=_KERAS + "model.save('/models/click')\n"),
            "every worker saves to '/models/click'",
        ),
        "a MonitoredTrainingSession under Horovod, with the same folder on every rank": (
            ScriptFacts(source=_HOROVOD.replace("DIR", "'/work'")),
            "every rank saves to '/work'",
        ),
    },
    silent_on={
        "every worker saves a Keras model to a folder of its own": ScriptFacts(
            source=_KERAS + "model.save(write_path(task_id))\n"
        ),
        "a Keras model is saved under MirroredStrategy, on one host": ScriptFacts(
            source=_KERAS.replace("MultiWorkerM", "M") + "model.save('/models/click')\n"
        ),
        "only Horovod's rank 0 has a checkpoint folder": ScriptFacts(
            source=_HOROVOD.replace("DIR", "'/work' if hvd.rank() == 0 else None")
        ),
        "`torch.save` in the branch for a single process": ScriptFacts(
            source=_HEAD
            + "if not args.standalone:\n    dist.barrier()\nelse:\n    torch.save(m, 'm.pt')\n"
        ),
        "`torch.save` under a condition on rank 0": ScriptFacts(
            source=_HEAD + 'if dist.get_rank() == 0:\n    torch.save(state, "model.pt")\n'
        ),
        "`torch.save` under `not me`, where `me` is the rank": ScriptFacts(
            source="import os\n" + _HEAD + 'me = int(os.environ["RANK"])\nif not me:\n'
            '    torch.save(state, "model.pt")\n'
        ),
        "every rank saves to a path with its rank in it": ScriptFacts(
            source=_HEAD + 'torch.save(state, f"model{rank}.pt")\n'
        ),
        "`torch.save` in a function that only rank 0 calls": ScriptFacts(
            source=_HEAD + 'def save():\n    torch.save(state, "model.pt")\n'
            "if rank == 0:\n    save()\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
