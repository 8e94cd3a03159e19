"""The script uses CUDA before it forks processes that use CUDA too.

## Why it matters
A forked process inherits CUDA's state, which is not valid in it: "RuntimeError: Cannot re-initialize CUDA
in forked subprocess", or a hang in the first kernel. On Linux, `multiprocessing` forks unless told
otherwise (until Python 3.14). So does accelerate's `notebook_launcher`. A DataLoader with workers forks as
well: a dataset that puts its items on the GPU uses CUDA in them.

## What to do
Start the processes by `torch.multiprocessing.spawn`, or call `set_start_method("spawn")` first. Or let the
parent leave CUDA alone: `torch.cuda.is_available()` and `device_count()` are fine.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.python.command_line import option_of
from allaboard.formats.python.evaluation import integer
from allaboard.formats.python.flow.child_processes import launches
from allaboard.formats.python.flow.execution_order import certainly_runs_before
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_OTHER_START = re.compile(
    r"""set_start_method|get_context\((?!(?:method=)?['"]fork['"])|['"](?:spawn|forkserver)['"]"""
)
"""Matches a script that chooses how processes start."""
_HARMLESS = frozenset(
    f"torch.cuda.{name}"
    for name in (
        *("is_available", "is_initialized", "device_count", "manual_seed", "manual_seed_all"),
        *("empty_cache", "memory_allocated", "reset_peak_memory_stats"),
    )
)
"""Functions that do not start CUDA: seeds are kept until CUDA starts."""
_LAUNCHERS = ("accelerate.notebook_launcher", "accelerate.launchers.notebook_launcher")
_CUDA_TEXT = re.compile(r"\.cuda\(|['\"]cuda|torch\.cuda\.(?!is_available|device_count)|['\"]nccl")


def check(facts: ScriptFacts) -> Iterator[Claim]:
    source = facts.source
    if "notebook_launcher" in source and "cuda" in source:
        yield from _from_notebook(read_script(facts))
    if "num_workers" in source and "__getitem__" in source and "cuda" in source:
        yield from _in_loader_workers(facts)
    if ("Process(" not in source and "start_processes" not in source) or "cuda" not in source:
        return
    if _OTHER_START.search(source):
        return
    script = read_script(facts)
    for launch in launches(script):
        name = script.call_name(launch.call.func)
        if name.endswith("spawn") or not name.startswith(("torch.multi", "multiprocessing")):
            continue
        if not _CUDA_TEXT.search(ast.unparse(launch.function)):
            continue
        use = next(_earlier_cuda_uses(script, launch.call), None)
        if use is None:
            continue
        yield Claim(
            summary=f"CUDA is used before {launch.function.name} is forked, which uses it again: "
            "it cannot be initialised there",
            evidence=(script.evidence_for(use), script.evidence_for(launch.call)),
            fix='torch.multiprocessing.set_start_method("spawn")   # first line of the main part',
            certainty=Certainty.LIKELY,
            where=script.place_of(use),
        )
        return


def _in_loader_workers(facts: ScriptFacts) -> Iterator[Claim]:
    """Report a dataset that uses CUDA, in the processes that its DataLoader forks."""
    if _OTHER_START.search(facts.source) or "multiprocessing_context" in facts.source:
        return
    script = read_script(facts)
    for loader in script.calls_of("torch.utils.data.DataLoader"):
        workers = call_argument(loader, "num_workers", 5)
        option = option_of(script, workers)
        count = integer(script, option.default if option is not None else workers)
        dataset = call_argument(loader, "dataset", 0)
        dataset_call = resolve(script, dataset) if dataset is not None else None
        name = (
            dataset_call.func.id
            if isinstance(dataset_call, ast.Call) and isinstance(dataset_call.func, ast.Name)
            else ""
        )
        if not count or not name:
            continue
        for use in _cuda_uses_of_dataset(script, name):
            yield Claim(
                summary=f"{name}.__getitem__ uses CUDA in the {count} processes that the DataLoader forks: "
                "it cannot be initialised there",
                evidence=(script.evidence_for(use), script.evidence_for(loader)),
                fix="for batch in loader: batch = batch.to(device, non_blocking=True)   "
                "# and tensors of the CPU from the dataset",
                certainty=Certainty.LIKELY,
                where=script.place_of(use),
            )
            return


def _cuda_uses_of_dataset(script: Script, name: str) -> Iterator[ast.Call]:
    for call_name, call in script.calls:
        function = script.enclosing_function(call)
        owner = script.parents.get(function) if function is not None else None
        if not isinstance(owner, ast.ClassDef) or owner.name != name or function is None:
            continue
        if function.name == "__getitem__" and _starts_cuda(call_name, _resolved(script, call)):
            yield call


def _resolved(script: Script, call: ast.Call) -> ast.Call:
    """Return `x.to(device)` with the text of the device that the name stands for."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "to" or not call.args:
        return call
    device = resolve(script, call.args[0])
    if isinstance(device, ast.Call) and script.call_name(device.func) == "torch.device":
        device = resolve(script, device.args[0]) if device.args else device
    return ast.Call(call.func, [device, *call.args[1:]], call.keywords)


def _from_notebook(script: Script) -> Iterator[Claim]:
    """Report accelerate's launcher in a notebook, which forks, behind a cell that used CUDA."""
    for start in script.calls_of(*_LAUNCHERS):
        count = call_argument(start, "num_processes", 2)
        if isinstance(count, ast.Constant) and count.value in (None, 0, 1):
            continue
        use = next(_earlier_cuda_uses(script, start), None)
        if use is None:
            continue
        function = ast.unparse(start.args[0]) if start.args else "the function"
        yield Claim(
            summary=f"CUDA is used before notebook_launcher forks {function}: it cannot be initialised there",
            evidence=(script.evidence_for(use), script.evidence_for(start)),
            fix=f"move this line into {function}, then restart the kernel",
            certainty=Certainty.LIKELY,
            where=script.place_of(use),
        )
        return


def _earlier_cuda_uses(script: Script, start: ast.Call) -> Iterator[ast.Call]:
    """Yield the calls that start CUDA in the parent, certainly before the processes are started."""
    function = script.enclosing_function(start)
    for name, call in script.calls:
        if _starts_cuda(name, call) and (
            certainly_runs_before(script, call, start)
            or (
                function is not None and _is_at_the_top(script, call) and call.lineno < start.lineno
            )
        ):
            yield call


def _is_at_the_top(script: Script, node: ast.AST) -> bool:
    """Return True for what runs as soon as the script is read, before any of its functions."""
    around = (ast.If, ast.Try, ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)
    return not any(isinstance(a, around) for a in script.ancestors(node))


def _starts_cuda(name: str, call: ast.Call) -> bool:
    if name.startswith("torch.cuda."):
        return name not in _HARMLESS and name.count(".") == 2 and name.rpartition(".")[2].islower()
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        return True
    moved_to = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "device")]
    moves = isinstance(call.func, ast.Attribute) and call.func.attr == "to"
    makes = name.startswith("torch.") and any(k.arg == "device" for k in call.keywords)
    return (moves or makes) and any(
        isinstance(n, ast.Constant) and str(n.value).startswith("cuda") for n in moved_to
    )


_SCRIPT = """import torch
import torch.multiprocessing as mp
def work(rank):
    x = torch.ones(2).cuda(rank)
if __name__ == "__main__":
    BEFORE
    for r in range(2):
        mp.Process(target=work, args=(r,)).start()
"""

_DATASET = """import torch
from torch.utils.data import DataLoader, Dataset
device = torch.device("cuda", 0)
class Rows(Dataset):
    def __getitem__(self, i):
        return torch.ones(i).to(device)
for x in DataLoader(Rows(), num_workers=2):
    print(x)
"""
_NOTEBOOK = """from accelerate import notebook_launcher
model = make().to('cuda')
def train(model):
    fit(model, use=the_gpu)
notebook_launcher(train, (model,), num_processes=2)
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "a dataset uses CUDA in the forked workers of a DataLoader": (
            ScriptFacts(source=_DATASET),
            "Rows.__getitem__ uses CUDA in the 2 processes that the DataLoader forks: it cannot be "
            "initialised there",
        ),
        "a model is moved to the GPU before the processes are forked": (
            ScriptFacts(source=_SCRIPT.replace("BEFORE", "model = Net().to('cuda')")),
            "CUDA is used before work is forked, which uses it again: it cannot be initialised there",
        ),
        "`torch.cuda.current_device()` before the processes are forked": (
            ScriptFacts(source=_SCRIPT.replace("BEFORE", "print(torch.cuda.current_device())")),
            "CUDA is used before work is forked, which uses it again: it cannot be initialised there",
        ),
        "a notebook uses CUDA before accelerate's `notebook_launcher`": (
            ScriptFacts(source=_NOTEBOOK),
            "CUDA is used before notebook_launcher forks train: it cannot be initialised there",
        ),
    },
    silent_on={
        "a dataset that stays on the CPU": ScriptFacts(source=_DATASET.replace(".to(device)", "")),
        "a dataset uses CUDA, and the DataLoader has no workers": ScriptFacts(
            source=_DATASET.replace("=2", "=0")
        ),
        "a dataset uses CUDA in workers that are spawned": ScriptFacts(
            source=_DATASET.replace("=2", "=2, multiprocessing_context='spawn'")
        ),
        "a notebook that leaves CUDA to the processes that it launches": ScriptFacts(
            source=_NOTEBOOK.replace("'cuda'", "'cpu'")
        ),
        "a notebook that launches a single process": ScriptFacts(
            source=_NOTEBOOK.replace("=2", "=1")
        ),
        "processes that are spawned instead of forked": ScriptFacts(
            source=_SCRIPT.replace("BEFORE", "mp.set_start_method('spawn'); m = Net().cuda()")
        ),
        "`torch.cuda.device_count()` before the processes are forked": ScriptFacts(
            source=_SCRIPT.replace("BEFORE", "print(torch.cuda.device_count())")
        ),
        "forked processes that do not use CUDA": ScriptFacts(
            source=_SCRIPT.replace("BEFORE", "m = Net().cuda()").replace(".cuda(rank)", "")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
