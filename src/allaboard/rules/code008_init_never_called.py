"""The script prepares for distributed training, but never joins it.

## Why it matters
If TF_CONFIG is set but no strategy is created, TensorFlow trains alone on every worker, silently, with exit
code 0. MirroredStrategy does the same: it knows the GPUs of its own host alone. DistributedDataParallel or a
collective without `init_process_group` fails with `Default process group has not been initialized` on the
ranks that get there.

## What to do
Call the framework's own init first: `dist.init_process_group(...)`, or create a strategy.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, read_script
from allaboard.formats.python.written_tf_config import dict_entries, written_tf_configs

_DDP = "torch.nn.parallel.DistributedDataParallel"
_OWN_INIT = re.compile(r"init|setup|launch|prepare|spawn|main_worker", re.I)
_JOINING_CALLS = ("tensorflow.distribute.", "tensorflow.estimator.", "tensorflow.train.Server",
          "tensorflow.train.ClusterSpec", "tensorflow.tpu.")  # fmt: skip


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if facts.is_piece:
        return  # what it lacks may stand in the rest of the script
    script = read_script(facts)
    yield from _check_torch(script)
    yield from _check_tensorflow(script, facts.source)
    yield from _check_mirrored(script, facts)


def _check_torch(script: Script) -> Iterator[Claim]:
    wraps = script.calls_of(_DDP)
    if not wraps or script.uses_launching_library:
        return
    if script.calls_of("torch.distributed.init_process_group"):
        return
    if all(_is_for_importers(script, wrap) for wrap in wraps):
        return
    # A helper of the script or of another module of its author may join.
    if any(_OWN_INIT.search(name.rpartition(".")[2]) and "__init__" not in name
           for name, _ in script.calls):  # fmt: skip
        return
    yield Claim(
        summary="DistributedDataParallel is used, but init_process_group is never called",
        evidence=(script.evidence_for(wraps[0]),),
        fix='torch.distributed.init_process_group("gloo")   # or "nccl"; '
        f"before line {wraps[0].lineno}",
        certainty=Certainty.LIKELY,
        where=script.place_of(wraps[0]),
    )


def _is_for_importers(script: Script, node: ast.AST) -> bool:
    """Return True if the node stands in a function or class that this file defines for others to use."""
    if any("__name__" in line and "__main__" in line for line in script.lines):
        return False
    outer = [
        a
        for a in script.ancestors(node)
        if isinstance(a, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]
    used = {n.id for n in script.parents if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return bool(outer) and not any(a.name in used for a in outer)


def _check_tensorflow(script: Script, source: str) -> Iterator[Claim]:
    if "TF_CONFIG" not in source or "tensorflow" not in script.names.values():
        return
    setting = next(
        (n for n, line in enumerate(script.lines, 1)
         if re.match(r"\s*os\.environ\[['\"]TF_CONFIG['\"]\]\s*=", line)),
        0,
    )  # fmt: skip
    if not setting or re.search(
        r"Strategy|estimator|contrib\.learn|Popen|subprocess|multiprocess", source
    ):
        return
    if any(name.startswith(_JOINING_CALLS) for name, _ in script.calls):
        return
    text = script.lines[setting - 1].strip()[:120]
    from allaboard.facts import Evidence, Place

    setting_place = Place(file=script.file, line=setting, column=1)
    yield Claim(
        summary="TF_CONFIG is set, but no strategy is created: each worker trains alone",
        evidence=(Evidence(text, str(setting_place)),),
        fix="strategy = tf.distribute.MultiWorkerMirroredStrategy()",
        certainty=Certainty.LIKELY,
        where=setting_place,
    )


def _check_mirrored(script: Script, facts: ScriptFacts) -> Iterator[Claim]:
    """Report a cluster of several workers, of which a strategy of one host knows nothing."""
    if "TF_CONFIG" not in facts.source or facts.is_notebook or not script.strategies:
        return
    names = {script.call_name(s.func).rpartition(".")[2] for s in script.strategies}
    if not names <= {"MirroredStrategy", "OneDeviceStrategy"} or "stimator" in facts.source:
        return
    for written in written_tf_configs(script):
        cluster = written.entries.get("cluster")
        jobs = dict_entries(script, cluster[1]) if cluster is not None else None
        workers = resolve(script, jobs["worker"][1]) if jobs and "worker" in jobs else None
        if not isinstance(workers, ast.List) or len(workers.elts) < 2:
            continue
        strategy_call = script.strategies[0]
        yield Claim(
            summary=f"TF_CONFIG lists {len(workers.elts)} workers, and {min(names)} knows only this host's "
            "GPUs: each worker trains alone",
            evidence=(script.evidence_for(strategy_call), script.evidence_for(written.statement)),
            fix="strategy = tf.distribute.MultiWorkerMirroredStrategy()",
            certainty=Certainty.LIKELY,
            where=script.place_of(strategy_call),
        )
        return


_WRAP = """from torch.nn.parallel import DistributedDataParallel as DDP
model = DDP(net)
"""
_SET = """import os
import tensorflow as tf
os.environ["TF_CONFIG"] = text
"""
_TWO = """import json, os, sys
import tensorflow as tf
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": ["a:2222", "b:2222"]},
    "task": {"type": "worker", "index": int(sys.argv[1])},
})
strategy = tf.distribute.NAME()
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "DistributedDataParallel without `init_process_group`": (
            ScriptFacts(source=_WRAP),
            "DistributedDataParallel is used, but init_process_group is never called",
        ),
        "TF_CONFIG is set, and no strategy is created": (
            ScriptFacts(source=_SET + "model = tf.keras.Sequential([])\n"),
            "TF_CONFIG is set, but no strategy is created: each worker trains alone",
        ),
        "MirroredStrategy with a TF_CONFIG of two workers": (
            ScriptFacts(source=_TWO.replace("NAME", "MirroredStrategy")),
            "TF_CONFIG lists 2 workers, and MirroredStrategy knows only this host's GPUs: "
            "each worker trains alone",
        ),
    },
    silent_on={
        "MultiWorkerMirroredStrategy with a TF_CONFIG of two workers": ScriptFacts(
            source=_TWO.replace("NAME", "MultiWorkerMirroredStrategy")
        ),
        "MirroredStrategy with a TF_CONFIG of one worker": ScriptFacts(
            source=_TWO.replace("NAME", "MirroredStrategy").replace(', "b:2222"', "")
        ),
        "a function of another module, which may call `init_process_group`": ScriptFacts(
            source="from mine import setup\nsetup()\n" + _WRAP
        ),
        "a function that wraps a model for other scripts": ScriptFacts(
            source="from torch.nn.parallel import DistributedDataParallel as DDP\n"
            "def wrap(model):\n    return DDP(model)\n"
        ),
        "MirroredStrategy with a TF_CONFIG of unknown size": ScriptFacts(
            source=_SET + "s = tf.distribute.MirroredStrategy()\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
