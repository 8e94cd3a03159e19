"""A distributed PyTorch script feeds every rank from a DataLoader without a distributed sampler.

## Why it matters
Each rank then reads the whole dataset in the same order: N ranks do the same work N times over. Nothing
fails; an epoch takes as long as on one process, and the batches are effectively equal. Under accelerate a
loader is divided only if it went through `accelerator.prepare`.

## What to do
Use `sampler = DistributedSampler(dataset)` and `DataLoader(dataset, sampler=sampler, …)`, without
`shuffle=True`.

An `IterableDataset` takes no sampler. Let its `__iter__` yield every N-th item, `itertools.islice(items,
dist.get_rank(), None, dist.get_world_size())`, and divide further by `get_worker_info()` if the loader has
workers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_LOADER = "torch.utils.data.DataLoader"
_DDP = "torch.nn.parallel.DistributedDataParallel"
_FABRIC = ("lightning.Fabric()", "lightning.fabric.Fabric()", "lightning_fabric.Fabric()")
_SAMPLER_OFF = re.compile(r"(?:use_distributed_sampler|replace_sampler_ddp)\s*=\s*False")
_DIVIDES = re.compile(r"[sS]ampler|rank|world|shard|islice")
_SEVERAL_DEVICES = re.compile(r"(?:devices|gpus|num_nodes)=(?:[2-9]|[1-9]\d|-1)")
_RAY_DIVIDES = re.compile(
    r"prepare_data_loader|get_dataset_shard|DistributedSampler|accelerate|transformers|ightning|deepspeed"
    r"|num_workers=1\b"
)
"""Matches what divides data under Ray, or a job of one worker."""
_SHARDING_NAMES = ("shard", "split_dataset_by_node", "Subset", "random_split", "split_by_node")
_SEEDING_FUNCTIONS = (
    "seed",
    "manual_seed",
    "manual_seed_all",
    "default_rng",
    "RandomState",
    "seed_everything",
)
_RANDOM_DATA = re.compile(r"\brand|\brandom\b|\brng\b|\bnormal\b")
"""Data that is drawn at random, as in benchmarks."""
_DIVIDES_BY_RANK = re.compile(r"rank|world|replica|shard|islice|process_index|num_process", re.I)


_MODEL_PARALLEL = re.compile(
    r"tensor_model_parallel|model_parallel_size|parallelize_module|ColwiseParallel|PipelineStage"
    r"|pipeline_parallel|init_device_mesh"
)


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if facts.is_piece:
        return  # what it lacks may stand in the rest of the script
    script = read_script(facts)
    loaders = script.calls_of(_LOADER)
    if ("accelerate" in facts.source or "abric" in facts.source) and loaders:
        yield from _unprepared(script, loaders)
    if "ightning" in facts.source:
        yield from _undivided_stream(script, loaders)
    if "TorchTrainer" in facts.source:
        yield from _unprepared_by_ray(script, loaders)
    if _SAMPLER_OFF.search(facts.source):
        yield from _without_sampler(script, loaders)
    group = script.calls_of("torch.distributed.init_process_group") or script.calls_of(_DDP)
    if not loaders or not group or script.uses_launching_library:
        return
    if ".eval()" in facts.source and "backward(" not in facts.source:
        return  # it evaluates only: nothing is averaged
    if _MODEL_PARALLEL.search(facts.source):
        return  # ranks that hold parts of one model read the same data
    yield from _check_unused_samplers(script, loaders)
    dataset = call_argument(loaders[0], "dataset", 0)
    stream_class = _stream_class(script, dataset)
    if _is_sharded(script, stream_class) or (
        dataset is not None and _differs_by_rank(script, dataset)
    ):
        return
    for call in loaders:
        keywords = {k.arg for k in call.keywords}
        if None in keywords or {"sampler", "batch_sampler"} & keywords or len(call.args) > 3:
            return
    train_loader = loaders[0]
    yield Claim(
        summary="every rank reads the whole dataset: "
        + (
            f"{stream_class.name} does not divide it"
            if stream_class
            else "the DataLoader has no DistributedSampler"
        ),
        evidence=(script.evidence_for(train_loader), script.evidence_for(group[0])),
        fix=_fix(dataset, stream_class),
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(train_loader),
    )


def _unprepared(script: Script, loaders: list[ast.Call]) -> Iterator[Claim]:
    """Report a loader that accelerate or Fabric trains from, and never got to divide."""
    is_fabric = "accelerate" not in "\n".join(script.lines)
    owners = _FABRIC if is_fabric else ("accelerate.Accelerator()",)
    method = "setup_dataloaders" if is_fabric else "prepare"
    prepares = script.calls_of(*(f"{o}.{'setup' if is_fabric else 'prepare'}" for o in owners))
    steps = script.calls_of(*(f"{o}.backward" for o in owners))
    dividing = script.method_calls(method, "prepare_data_loader")
    prepared_names = {ast.unparse(a) for c in (*prepares, *dividing) for a in c.args}
    if len(prepares) != 1 or not steps or any(text.startswith("*") for text in prepared_names):
        return
    for loader in loaders:
        parent = script.parents.get(loader)
        name = ast.unparse(parent.targets[0]) if isinstance(parent, ast.Assign) else ""
        if (
            not name
            or name in prepared_names
            or {"sampler", "batch_sampler", None} & {k.arg for k in loader.keywords}
        ):
            continue
        step = next((s for s in steps if _iterates_over(script, s, name)), None)
        if step is None or _is_bound_again(script, name):
            continue
        owner = ast.unparse(prepares[0].func).rpartition(".")[0]
        named = f"fabric.{method}" if is_fabric else "accelerator.prepare"
        yield Claim(
            summary=f"every rank reads the whole dataset: {name} is not passed to {named}",
            evidence=(script.evidence_for(loader), script.evidence_for(prepares[0])),
            fix=f"{name} = {owner}.{method}({name})",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(loader),
        )
        return


def _without_sampler(script: Script, loaders: list[ast.Call]) -> Iterator[Claim]:
    """Report a loader without a sampler where Lightning is told not to add one."""
    trainers = [c for n, c in script.calls if n.endswith(".Trainer") and "ightning" in n]
    source = "\n".join(script.lines)
    if not loaders or _DIVIDES.search(_SAMPLER_OFF.sub("", source)):
        return
    for trainer in trainers:
        off = _SAMPLER_OFF.search(ast.unparse(trainer))
        if off is None or not _SEVERAL_DEVICES.search(ast.unparse(trainer)):
            continue
        yield Claim(
            summary="every rank reads the whole dataset: Lightning adds no DistributedSampler, and the "
            "DataLoader has none",
            evidence=(script.evidence_for(loaders[0]), script.evidence_for(trainer)),
            fix=f"without {off[0]}",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(loaders[0]),
        )
        return


def _undivided_stream(script: Script, loaders: list[ast.Call]) -> Iterator[Claim]:
    """Report an IterableDataset that every rank of Lightning reads whole: no sampler can divide it."""
    trainers = [
        c
        for n, c in script.calls
        if n.endswith(".Trainer") and "ightning" in n and _SEVERAL_DEVICES.search(ast.unparse(c))
    ]
    for loader in loaders if trainers else ():
        stream = _stream_class(script, call_argument(loader, "dataset", 0))
        text = ast.unparse(stream) if stream is not None else ""
        if stream is None or _DIVIDES_BY_RANK.search(text) or _RANDOM_DATA.search(text):
            continue
        if _differs_by_rank(script, loader):
            continue
        yield Claim(
            summary=f"every rank reads the whole dataset: {stream.name} does not divide it, and Lightning "
            "divides no IterableDataset",
            evidence=(script.evidence_for(loader), script.evidence_for(trainers[0])),
            fix=_fix(None, stream),
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(loader),
        )
        return


def _unprepared_by_ray(script: Script, loaders: list[ast.Call]) -> Iterator[Claim]:
    """Report a loader in the function that Ray runs on each worker, which nothing divides."""
    source = "\n".join(script.lines)
    if _RAY_DIVIDES.search(source):
        return
    for name, trainer in script.calls:
        if not name.endswith("ray.train.torch.TorchTrainer"):
            continue
        loop = call_argument(trainer, "train_loop_per_worker", 0)
        functions = script.functions_named(loop.id) if isinstance(loop, ast.Name) else []
        if len(functions) != 1 or "backward(" not in source:
            continue
        inner = [c for c in loaders if script.enclosing_function(c) is functions[0]]
        plain = [
            c for c in inner if not {"sampler", "batch_sampler", None} & {k.arg for k in c.keywords}
        ]
        if not plain or _contains_rank(script, plain[0]):
            continue
        yield Claim(
            summary="every worker reads the whole dataset: this DataLoader does not go through "
            "ray.train.torch.prepare_data_loader",
            evidence=(script.evidence_for(plain[0]), script.evidence_for(trainer)),
            fix="loader = ray.train.torch.prepare_data_loader(loader)",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(plain[0]),
        )
        return


def _is_bound_again(script: Script, name: str) -> bool:
    """Return True if the variable holds another loader as well."""
    stores = (
        n
        for n in script.parents
        if isinstance(n, (ast.Name, ast.Attribute)) and isinstance(n.ctx, ast.Store)
    )
    return sum(ast.unparse(n) == name for n in stores) > 1


def _iterates_over(script: Script, node: ast.AST, name: str) -> bool:
    """Return True if a loop around the node runs over this variable, counted or shown as it may be."""
    return any(
        isinstance(a, ast.For)
        and any(
            isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) == name
            for n in ast.walk(a.iter)
        )
        for a in script.ancestors(node)
    )


def _fix(dataset: ast.expr | None, stream_class: ast.ClassDef | None) -> str:
    if stream_class is not None:
        return (
            f"in {stream_class.name}.__iter__: itertools.islice(items, dist.get_rank(), None, "
            "dist.get_world_size()), and by get_worker_info() too if num_workers > 1"
        )
    plain = isinstance(dataset, (ast.Name, ast.Attribute))
    name = ast.unparse(dataset) if dataset is not None and plain else "dataset"
    return f"DataLoader({name}, sampler=DistributedSampler({name}), …)"


def _origin_expressions(script: Script, dataset: ast.expr | None) -> list[ast.expr]:
    """Return the expression and what its variables were assigned from, a few steps back."""
    expressions = [dataset] if dataset is not None else []
    names: set[str] = set()
    for _ in range(3):
        nodes = [n for e in expressions for n in ast.walk(e)]
        names |= {ast.unparse(n) for n in nodes if isinstance(n, (ast.Name, ast.Attribute))}
        for node in ast.walk(script.tree):
            if isinstance(node, ast.Assign) and node.value not in expressions:
                expressions += [node.value for t in node.targets if ast.unparse(t) in names]
    return expressions


def _own_classes(script: Script, expressions: list[ast.expr]) -> list[ast.ClassDef]:
    """Return the script's own classes that the expressions name."""
    names = {n.id for e in expressions for n in ast.walk(e) if isinstance(n, ast.Name)}
    nodes = ast.walk(script.tree)
    return [n for n in nodes if isinstance(n, ast.ClassDef) and n.name in names]


def _stream_class(script: Script, dataset: ast.expr | None) -> ast.ClassDef | None:
    """Return the script's own IterableDataset that the loader reads, or None."""
    for dataset_class in _own_classes(script, _origin_expressions(script, dataset)):
        if any(ast.unparse(b).endswith("IterableDataset") for b in dataset_class.bases):
            return dataset_class
    return None


def _differs_by_rank(script: Script, dataset: ast.expr) -> bool:
    """Return True if each rank has data of its own: chosen by its rank, or drawn with a seed from it."""
    expressions = _origin_expressions(script, dataset)
    parts: list[ast.AST] = [*expressions, *_own_classes(script, expressions)]
    nodes = [n for part in parts for n in ast.walk(part)]
    if any(
        isinstance(n, (ast.Name, ast.Attribute, ast.Call)) and script.depends_on_rank(n)
        for n in nodes
    ):
        return True
    seeded = any(
        name.rpartition(".")[2] in _SEEDING_FUNCTIONS
        and any(_contains_rank(script, a) for a in call.args)
        for name, call in script.calls
    )
    return seeded and any(_RANDOM_DATA.search(ast.unparse(part)) for part in parts)


def _contains_rank(script: Script, value: ast.expr) -> bool:
    return any(isinstance(n, ast.expr) and script.depends_on_rank(n) for n in ast.walk(value))


def _check_unused_samplers(script: Script, loaders: list[ast.Call]) -> Iterator[Claim]:
    """Report a sampler that no loader gets, beside a loader that shuffles by itself."""
    shuffles = [c for c in loaders if _is_true(call_argument(c, "shuffle", 2)) and len(c.args) < 4]
    plain = [c for c in shuffles if not {"sampler", None} & {k.arg for k in c.keywords}]
    sampler_assignments = [
        n for n in ast.walk(script.tree) if isinstance(n, ast.Assign) and _is_sampler(n.value)
    ]
    for assign in sampler_assignments:
        target = assign.targets[0]
        if not isinstance(target, ast.Name) or not plain or _is_used(script, target.id):
            continue
        yield Claim(
            summary=f"{target.id} is not passed to any DataLoader: every rank reads the whole dataset",
            evidence=(script.evidence_for(assign), script.evidence_for(plain[0])),
            fix=f"sampler={target.id} instead of shuffle=True",
            severity=Severity.WARNING,
            certainty=Certainty.LIKELY,
            where=script.place_of(plain[0]),
        )


def _is_true(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _is_sampler(node: ast.expr) -> bool:
    name = node.func if isinstance(node, ast.Call) else None
    text = name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")
    return text == "DistributedSampler"


def _is_used(script: Script, name: str) -> bool:
    """Return True if the variable is read for more than ``set_epoch``."""
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            above = script.parents.get(node)
            if not (isinstance(above, ast.Attribute) and above.attr == "set_epoch"):
                return True
    return False


def _is_sharded(script: Script, stream_class: ast.ClassDef | None) -> bool:
    """Return True if anything in the script divides the data in another way.

    An IterableDataset from elsewhere may; of the script's own (``own``) it can be seen.
    """
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Name) and (
            node.id.endswith("Sampler") or node.id in _SHARDING_NAMES
        ):
            return True
        if isinstance(node, ast.Attribute) and (
            node.attr.endswith("Sampler") or node.attr in _SHARDING_NAMES
        ):
            return True
        if isinstance(node, ast.ClassDef) and node is not stream_class and any(
            ast.unparse(base).endswith("IterableDataset") for base in node.bases
        ):  # fmt: skip
            return True
        if isinstance(node, ast.Slice) and node.step is not None:
            return True  # data[rank::world_size]
    if stream_class is not None:
        return bool(_DIVIDES_BY_RANK.search(ast.unparse(stream_class)))
    return any("IterableDataset" in full for full in script.names.values())


_HEAD = """import torch.distributed as dist
from torch.utils.data import DataLoader, DistributedSampler as Spread
dist.init_process_group("gloo")
"""

_ACCELERATED = """from accelerate import Accelerator
from torch.utils.data import DataLoader
acc = Accelerator()
loader = DataLoader(rows)
model = acc.prepare(GIVEN)
for i, x in enumerate(loader):
    acc.backward(model(x))
"""
_FABRIC_LOOP = """from lightning.fabric import Fabric
from torch.utils.data import DataLoader
fabric = Fabric(devices=4)
model, optimizer = fabric.setup(model, optimizer)
loader = DataLoader(data, shuffle=True)
for x in loader:
    fabric.backward(model(x).sum())
"""
_SAMPLER_OFF_LOOP = """import lightning as L
from torch.utils.data import DataLoader
loader = DataLoader(data, shuffle=True)
L.Trainer(devices=4, use_distributed_sampler=False).fit(net, loader)
"""
_STREAM = """import torch
class Lines(torch.utils.data.IterableDataset):
    def __iter__(self):
        yield from open(p)
"""
_LIGHTNING_STREAM = (
    "import lightning as L\n"
    + _STREAM
    + "loader = torch.utils.data.DataLoader(Lines())\nL.Trainer(devices=4).fit(net, loader)\n"
)
_RAY_LOOP = """import ray.train.torch
from ray.train.torch import TorchTrainer
from torch.utils.data import DataLoader
def loop(config):
    l = DataLoader(rows, shuffle=True)
    for x in l:
        net(x).sum().backward()
TorchTrainer(loop, scaling_config=scaling).fit()
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a DataLoader that is not passed to `accelerator.prepare`": (
            ScriptFacts(source=_ACCELERATED.replace("GIVEN", "model")),
            "every rank reads the whole dataset: loader is not passed to accelerator.prepare",
        ),
        "an IterableDataset that every rank of Lightning reads whole": (
            ScriptFacts(source=_LIGHTNING_STREAM),
            "every rank reads the whole dataset: Lines does not divide it, and Lightning divides no "
            "IterableDataset",
        ),
        "a DataLoader that is not passed to Ray's `prepare_data_loader`": (
            ScriptFacts(source=_RAY_LOOP),
            "every worker reads the whole dataset: this DataLoader does not go through "
            "ray.train.torch.prepare_data_loader",
        ),
        "a DataLoader that is not passed to Fabric's `setup_dataloaders`": (
            ScriptFacts(source=_FABRIC_LOOP),
            "every rank reads the whole dataset: loader is not passed to fabric.setup_dataloaders",
        ),
        "a DataLoader without a sampler where Lightning adds none": (
            ScriptFacts(source=_SAMPLER_OFF_LOOP),
            "every rank reads the whole dataset: Lightning adds no DistributedSampler, and the DataLoader "
            "has none",
        ),
        "a DataLoader with `shuffle=True` and without a sampler": (
            ScriptFacts(source=_HEAD + "loader = DataLoader(data, batch_size=8, shuffle=True)\n"),
            "every rank reads the whole dataset: the DataLoader has no DistributedSampler",
        ),
        "a DistributedSampler that is not passed to the DataLoader": (
            ScriptFacts(
                source=_HEAD.replace(" as Spread", "")
                + "s = DistributedSampler(data)\nloader = DataLoader(data, shuffle=True)\n"
                "s.set_epoch(1)\n"
            ),
            "s is not passed to any DataLoader: every rank reads the whole dataset",
        ),
        "an IterableDataset that does not divide its data": (
            ScriptFacts(source=_HEAD + _STREAM + "loader = DataLoader(Lines(), batch_size=8)\n"),
            "every rank reads the whole dataset: Lines does not divide it",
        ),
    },
    silent_on={
        "an IterableDataset of Lightning that divides itself": ScriptFacts(
            source=_LIGHTNING_STREAM.replace("open(p)", "islice(open(p), rank, None, world)")
        ),
        "an IterableDataset of Lightning on one device": ScriptFacts(
            source=_LIGHTNING_STREAM.replace("devices=4", "devices=1")
        ),
        "a DataLoader that Ray has prepared": ScriptFacts(
            source=_RAY_LOOP.replace(
                "    for x", "    l = ray.train.torch.prepare_data_loader(l)\n    for x"
            )
        ),
        "a DataLoader that Fabric has set up": ScriptFacts(
            source=_FABRIC_LOOP.replace("for x", "loader = fabric.setup_dataloaders(loader)\nfor x")
        ),
        "a DataLoader without a sampler, to which Lightning adds one": ScriptFacts(
            source=_SAMPLER_OFF_LOOP.replace(", use_distributed_sampler=False", "")
        ),
        "a trainer of Lightning on one device": ScriptFacts(
            source=_SAMPLER_OFF_LOOP.replace("devices=4", "devices=1")
        ),
        "a DataLoader that is passed to `accelerator.prepare`": ScriptFacts(
            source=_ACCELERATED.replace("GIVEN", "model, loader")
        ),
        "a DataLoader for evaluation alone": ScriptFacts(
            source=_HEAD + "model.eval()\nfor x in DataLoader(test_set):\n    count(model(x))\n"
        ),
        "tensor parallelism, where each rank holds a part of one model": ScriptFacts(
            source=_HEAD + "loader = DataLoader(data)\ninitialize(tensor_model_parallel_size=2)\n"
        ),
        "an IterableDataset that divides its data by the rank": ScriptFacts(
            source=_HEAD
            + _STREAM.replace("open(p)", "islice(open(p), dist.get_rank(), None, 2)")
            + "loader = DataLoader(Lines(), batch_size=8)\n"
        ),
        "random data, drawn with a seed that depends on the rank": ScriptFacts(
            source=_HEAD + "import torch\nr = dist.get_rank()\ntorch.manual_seed(7 + r)\n"
            "data = torch.randn(99, 8)\nloader = DataLoader(data)\n"
        ),
        "a dataset of files that are chosen by the rank": ScriptFacts(
            source=_HEAD + "r = dist.get_rank()\nloader = DataLoader(Lines(f'part-{r}.txt'))\n"
        ),
        "a DataLoader with a DistributedSampler": ScriptFacts(
            source=_HEAD + "loader = DataLoader(data, sampler=Spread(data))\n"
        ),
        "a DistributedSampler for training, and a shuffled DataLoader of test data": ScriptFacts(
            source=_HEAD.replace(" as Spread", "")
            + "s = DistributedSampler(data)\nloader = DataLoader(data, sampler=s)\n"
            "other = DataLoader(test, shuffle=True)\n"
        ),
        "data that is sliced by the rank": ScriptFacts(
            source=_HEAD + "mine = data[dist.get_rank()::2]\nloader = DataLoader(mine)\n"
        ),
        "a script without torch.distributed": ScriptFacts(
            source="from torch.utils.data import DataLoader\nloader = DataLoader(data)\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
