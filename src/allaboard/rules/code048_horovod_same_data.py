"""Under Horovod, every process trains on all of the data.

## Why it matters
Horovod averages gradients and leaves the data alone: what a script reads, each of its processes reads. If
nothing in it depends on `hvd.rank()` or is divided by `hvd.size()`, an epoch takes as long on eight GPUs
as on one, and the work is done eight times.

## What to do
Give each process its share: `dataset.shard(hvd.size(), hvd.rank())`, or a DistributedSampler with
`num_replicas=hvd.size(), rank=hvd.rank()`. With data in random order, it is enough to divide the steps or the
epochs by `hvd.size()`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.script_ast import Script, read_script

_NUMBERS = re.compile(r"horovod\.(?:\w+\.)*(?:size|rank|local_size|cross_rank|cross_size)")
_READS_DATA = re.compile(
    r"tensorflow\.data\.(?:\w+\.)*(?:TFRecordDataset|TextLineDataset|list_files|from_tensor_slices"
    r"|make_csv_dataset)|(?:tensorflow\.)?keras\.datasets\.\w+\.load_data|torch\.utils\.data\.DataLoader"
    r"|tensorflow_datasets\.load|(?:tensorflow\.)?keras\.(?:utils|preprocessing)\.image_dataset_from_directory"
)
_TRAINS = re.compile(r"DistributedOptimizer|DistributedGradientTape")
_MADE_UP = re.compile(r"random\.(?:uniform|normal|rand)|\brandn\(|synthetic|\bzeros\(", re.I)
_DIVIDES = re.compile(r"shard|sampler|partition|petastorm|elastic|split|spark", re.I)
_OPTIMIZER = re.compile(r"optim|\blr\b|learning_rate|adam|sgd|adadelta|rmsprop|scal|warm", re.I)


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if facts.is_piece:
        return  # what it lacks may stand in the rest of the script
    source = facts.source
    if "horovod" not in source or not _TRAINS.search(source):
        return
    if _MADE_UP.search(source) or _DIVIDES.search(source):
        return
    script = read_script(facts)
    if not any(name.startswith("horovod.") and name.endswith(".init") for name, _ in script.calls):
        return
    reads = [call for name, call in script.calls if _READS_DATA.fullmatch(name)]
    if not reads or any(
        _NUMBERS.fullmatch(name) and not _is_harmless(script, call) for name, call in script.calls
    ):
        return
    yield Claim(
        summary="every process of Horovod reads all of the data: an epoch takes as long as with one",
        evidence=(script.evidence_for(reads[0]),),
        fix="sampler=DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank())"
        if "torch" in source and "DataLoader" in source
        else "dataset = dataset.shard(hvd.size(), hvd.rank())   # before it is shuffled and batched",
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(reads[0]),
    )


def _is_harmless(script: Script, call: ast.Call) -> bool:
    """Return True if the number has nothing to do with the data: it scales the learning rate, chooses who
    prints and saves, or is printed."""
    child: ast.AST = call
    for above in script.ancestors(call):
        if isinstance(above, (ast.If, ast.IfExp)) and child is above.test:
            return True
        if isinstance(above, ast.Call) and child is not above.func:
            called = ast.unparse(above.func)
            if called in ("print", "str") or _OPTIMIZER.search(called) or ".info" in called:
                return True
        if isinstance(above, ast.keyword) and _OPTIMIZER.search(above.arg or ""):
            return True
        if isinstance(above, ast.Assign):
            return bool(_OPTIMIZER.search(ast.unparse(above.targets[0])))
        if isinstance(above, ast.stmt):
            return False
        child = above
    return False


_HEAD = "import horovod.tensorflow as hvd\nimport tensorflow as tf\nhvd.init()\n"
_DATA = "data = tf.data.TFRecordDataset(files).batch(32)\n"
_TAIL = (
    "opt = hvd.DistributedOptimizer(tf.optimizers.Adam(0.001 * hvd.size()))\n"
    "if hvd.rank() == 0:\n    print('starts')\nfit(data, opt)\n"
)
RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a TFRecordDataset that is not sharded": (
            ScriptFacts(source=_HEAD + _DATA + _TAIL),
            "every process of Horovod reads all of the data: an epoch takes as long as with one",
        ),
        "a DataLoader without a sampler": (
            ScriptFacts(
                source="import horovod.torch as hvd\nfrom torch.utils.data import DataLoader\nhvd.init()\n"
                "data = DataLoader(images, batch_size=32)\nopt = hvd.DistributedOptimizer(opt)\n"
            ),
            "every process of Horovod reads all of the data: an epoch takes as long as with one",
        ),
    },
    silent_on={
        "a dataset that is sharded by the rank": ScriptFacts(
            source=_HEAD + _DATA.replace(".batch", ".shard(hvd.size(), hvd.rank()).batch") + _TAIL
        ),
        "the number of steps is divided by the number of processes": ScriptFacts(
            source=_HEAD + _DATA + "steps = 500 // hvd.size()\n" + _TAIL
        ),
        "each process reads files of its own": ScriptFacts(
            source=_HEAD + "files = glob('part-%d' % hvd.rank())\n" + _DATA + _TAIL
        ),
        "random data instead of files": ScriptFacts(
            source=_HEAD + _DATA.replace("files", "tf.random.uniform([8])") + _TAIL
        ),
        "a function gets the dataset and the rank, and may shard": ScriptFacts(
            source=_HEAD + _DATA + "data = pick(data, hvd.rank())\n" + _TAIL
        ),
        "a script that does not train": ScriptFacts(source=_HEAD + _DATA),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
