"""What TensorFlow refuses of a cluster or of its coordinator's input: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.formats.python.command_line import option_of
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule
from allaboard.formats.python.written_tf_config import dict_entries

_CREATOR = re.compile(r"tensorflow\.keras\.utils\.experimental\.DatasetCreator|.*\bDatasetCreator")
_ENDS = re.compile(
    r"\.repeat\(|OutOfRange|StopIteration|except\b|has_value|cardinality"
    r"|while (?:True|1)\b|\bcycle\(|\.apply\("
)
"""Matches what makes a dataset infinite, or may, or expects that it ends."""
_READERS = re.compile(r"tensorflow\.data\.(?:Dataset\.from_|Dataset\.list_files|TF|Text|Fixed)\w*")


def _hosts_in_one_text(facts: ScriptFacts) -> Iterator[Claim]:
    if "ClusterSpec" not in facts.source:
        return
    script = read_script(facts)
    for call in script.calls_of("tensorflow.train.ClusterSpec"):
        entries = dict_entries(script, call.args[0]) if call.args else None
        for job, (_, value) in (entries or {}).items():
            origin = _text_origin(script, value)
            if origin is None:
                continue
            text = ast.unparse(value)
            yield Claim(
                summary=f"the hosts of job {job} are one text: ClusterSpec takes a list, and refuses it",
                evidence=(script.evidence_for(value), script.evidence_for(origin)),
                fix=f'"{job}": {text}.split(",")',
                certainty=Certainty.LIKELY,
                where=script.place_of(value),
            )
            break  # the other jobs of this cluster are written in the same way


def _text_origin(script: Script, value: ast.expr) -> ast.AST | None:
    """Return what shows that a value is a text: itself, its option or its variable; None if nothing does."""
    value = resolve(script, value)
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value
    read = value.value if isinstance(value, ast.Subscript) else None
    if isinstance(value, ast.Call):
        read = value if full_name(value.func, script.names) == "os.getenv" else value.func
        read = read.value if isinstance(read, ast.Attribute) and read.attr == "get" else read
    name = (
        full_name(read.func if isinstance(read, ast.Call) else read, script.names) if read else ""
    )
    if name in ("os.environ", "os.getenv"):
        return value
    option = option_of(script, value)
    if option is None:
        return None
    declared = ast.unparse(option.call.func).rpartition(".")[2]
    if declared.startswith("DEFINE_"):
        return option.call if declared == "DEFINE_string" else None
    kind = call_argument(option.call, "type")
    plain = kind is None or (isinstance(kind, ast.Name) and kind.id == "str")
    shaped = {"nargs", "action", None} & {k.arg for k in option.call.keywords}
    is_text = option.default is None or isinstance(option.default, ast.Constant)
    return option.call if plain and not shaped and is_text else None


def _fit_without_steps(facts: ScriptFacts) -> Iterator[Claim]:
    if "DatasetCreator" not in facts.source:
        return
    script = read_script(facts)
    for call in script.method_calls("fit"):
        data = call_argument(call, "x", 0)
        creator = resolve(script, data) if data is not None else None
        if not isinstance(creator, ast.Call) or not _CREATOR.fullmatch(
            script.call_name(creator.func)
        ):
            continue
        if {"steps_per_epoch", None} & {k.arg for k in call.keywords} or len(call.args) > 1:
            continue
        yield Claim(
            summary="fit gets a DatasetCreator and no steps_per_epoch: nobody knows where its epoch ends, "
            "and TensorFlow refuses it",
            evidence=(script.evidence_for(call), script.evidence_for(creator)),
            fix=f"{ast.unparse(call.func)}(…, steps_per_epoch=STEPS)",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )


def _finite_input(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "create_per_worker_dataset" not in source or facts.is_piece or _ENDS.search(source):
        return
    script = read_script(facts)
    readers = [c for n, c in script.calls if _READERS.fullmatch(n)]
    scheduled = [
        c
        for c in script.method_calls("schedule")
        if any(isinstance(a, (ast.For, ast.While)) for a in script.ancestors(c))
    ]
    if not readers or not scheduled or not script.method_calls("create_per_worker_dataset"):
        return
    is_begun_anew = any(
        isinstance(a, (ast.For, ast.While, ast.FunctionDef))
        for n, c in script.calls
        if n == "iter"
        for a in script.ancestors(c)
    )
    if is_begun_anew:
        return  # each epoch takes its steps from an iterator of its own
    yield Claim(
        summary="this dataset ends after one pass, and the coordinator takes steps from it by their number: "
        "a worker that comes to its end fails with OutOfRangeError",
        evidence=(script.evidence_for(readers[-1]), script.evidence_for(scheduled[0])),
        fix=".repeat()   # behind shuffle, before batch",
        severity=Severity.INFO,
        certainty=Certainty.LIKELY,
        where=script.place_of(readers[-1]),
    )


_SPEC = (
    "import argparse\nimport tensorflow as tf\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--ps_hosts', type=str, default='a:1')\nargs = parser.parse_args()\n"
    "cluster = tf.train.ClusterSpec({'ps': args.ps_hosts})\n"
)
_FLAGS = (
    "import tensorflow as tf\ntf.app.flags.DEFINE_string('hosts', '', 'h')\nFLAGS = tf.app.flags.FLAGS\n"
    "cluster = tf.train.ClusterSpec({'worker': FLAGS.hosts})\n"
)
_FIT = (
    "import tensorflow as tf\nstrategy = tf.distribute.ParameterServerStrategy(resolver)\n"
    "data = tf.keras.utils.experimental.DatasetCreator(make)\nmodel.fit(data, epochs=3)\n"
)
_SCHEDULED = (
    "import tensorflow as tf\ncoordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)\n"
    "def make():\n    return tf.data.Dataset.from_tensor_slices(x).batch(8)\n"
    "data = iter(coordinator.create_per_worker_dataset(make))\n"
    "for _ in range(900):\n    coordinator.schedule(step, args=(data,))\n"
)

RULES = {
    "code092_hosts_in_one_text": script_rule(
        page="""The hosts of a job are given to ClusterSpec as one text.

## Why it matters
An option such as `--worker_hosts=a:2222,b:2222` is one text. ClusterSpec takes a list of addresses for each
job, and refuses a text: "The tasks for job 'worker' must be a list or a dictionary".

## What to do
`args.worker_hosts.split(",")`.
""",
        check=_hosts_in_one_text,
        fires_on={
            "an option of argparse": (
                _SPEC,
                "the hosts of job ps are one text: ClusterSpec takes a list, and refuses it",
            ),
            "a flag of absl": (
                _FLAGS,
                "the hosts of job worker are one text: ClusterSpec takes a list, and refuses it",
            ),
            "a variable of the environment": (
                "import os\nimport tensorflow as tf\n"
                "spec = tf.train.ClusterSpec({'ps': os.environ['PS']})\n",
                "the hosts of job ps are one text: ClusterSpec takes a list, and refuses it",
            ),
        },
        silent_on={
            "the text is split": _SPEC.replace("args.ps_hosts}", "args.ps_hosts.split(',')}"),
            "an option that takes several words": _SPEC.replace("type=str", "nargs='+'"),
            "an option whose type splits the text": _SPEC.replace("type=str", "type=words"),
            "a list flag": _FLAGS.replace("DEFINE_string", "DEFINE_list"),
            "the option is split when it is read": _SPEC.replace(
                "cluster =", "args.ps_hosts = args.ps_hosts.split(',')\ncluster ="
            ),
        },
    ),
    "code093_fit_without_steps": script_rule(
        page="""`fit` gets a DatasetCreator, and not how many steps an epoch has.

## Why it matters
Under ParameterServerStrategy, each worker makes its own dataset, and none of them ends for the job.
TensorFlow refuses to begin without `steps_per_epoch`.

## What to do
`model.fit(creator, steps_per_epoch=SAMPLES // GLOBAL_BATCH_SIZE)`, and the same for `validation_steps`.
""",
        check=_fit_without_steps,
        fires_on={
            "`fit` with epochs alone": (
                _FIT,
                "fit gets a DatasetCreator and no steps_per_epoch: nobody knows where its epoch ends, and "
                "TensorFlow refuses it",
            )
        },
        silent_on={
            "`fit` with steps_per_epoch": _FIT.replace("epochs=3", "epochs=3, steps_per_epoch=9"),
            "arguments that are unpacked": _FIT.replace("epochs=3", "**options"),
            "a plain dataset": _FIT.replace("utils.experimental.DatasetCreator", "Dataset"),
        },
    ),
    "code094_finite_input": script_rule(
        page="""The dataset from which the coordinator's steps take their batches ends.

## Why it matters
`coordinator.schedule` hands out a number of steps, and each worker takes the batches for its own from its
own dataset. Where one comes to its end, the step fails with OutOfRangeError, and `join` or the next
`schedule` raises it. How many steps a worker gets depends on its speed.

## What to do
Let the dataset function end in `.shuffle(…).repeat().batch(…)`, and count the steps of an epoch.
""",
        check=_finite_input,
        fires_on={
            "a dataset without `repeat`, and a fixed number of steps": (
                _SCHEDULED,
                "this dataset ends after one pass, and the coordinator takes steps from it by their number: "
                "a worker that comes to its end fails with OutOfRangeError",
            )
        },
        silent_on={
            "the dataset repeats": _SCHEDULED.replace(".batch(8)", ".repeat().batch(8)"),
            "a generator without an end": _SCHEDULED.replace(
                "from_tensor_slices(x)", "from_generator(rows)"
            )
            + "def rows():\n    while True:\n        yield 1\n",
            "each epoch has an iterator of its own": _SCHEDULED.replace("data = iter(", "made = (")
            .replace("for _ in", "for e in range(3):\n  data = iter(made)\n  for _ in")
            .replace("    coord", "      coord"),
            "the end is expected": _SCHEDULED
            + "try:\n    coordinator.join()\nexcept tf.errors.OutOfRangeError:\n    pass\n",
        },
    ),
}
