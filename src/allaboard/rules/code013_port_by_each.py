"""Each process chooses MASTER_PORT or MASTER_ADDR by itself.

## Why it matters
If the process that joins picks a random or free port itself, every process has another one: rank 0 listens
on its own, the others connect to theirs, and all wait. The same happens if the port is computed from the
rank, if each process's function sets a different one, or if init_method names a temporary file of its own.

## What to do
Choose the port once, in the launcher or the parent process, and hand it to all: torchrun and `allaboard
run` do that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.facts.address import is_this_host_alone
from allaboard.formats.python.environment_writes import environment_writes
from allaboard.formats.python.evaluation import integer
from allaboard.formats.python.flow.child_processes import launches
from allaboard.formats.python.flow.execution_order import execution_frames
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Function, Script, call_argument, read_script

_CHOSEN_BY_PROCESS = re.compile(
    r"random|randint|free_port|find_port|open_port|getpid|gethostname|time\.time"
)
_RANK_NAME = re.compile(
    r"(?:global_|local_|proc_|process_|worker_)?rank|(?:process|proc|worker)_id|RANK|LOCAL_RANK"
)
_BINDS_ANY_PORT = re.compile(r"\.bind\(\([^()]*, 0\)\)")
_INIT = "torch.distributed.init_process_group"
_FILE_STORE = "torch.distributed.FileStore"

_FILE_BY_PROCESS = re.compile(r"tempfile\.|mktemp|mkstemp|uuid")
"""Matches the name of a file that is another one in each process."""


class Setting(NamedTuple):
    """A place where the script sets where the ranks meet."""

    node: ast.expr | ast.stmt
    name: str
    """MASTER_PORT or MASTER_ADDR, or init_method."""
    value: ast.expr


def check(facts: ScriptFacts) -> Iterator[Claim]:
    script = read_script(facts)
    inits = script.calls_of(_INIT)
    if not inits:
        return
    settings = [
        Setting(w.node, w.variable, w.value)
        for w in environment_writes(script, "MASTER_PORT", "MASTER_ADDR")
        if not w.is_default
    ]
    yield from _check_own_choice(
        script, [*settings, *_stated_urls(script, inits)], inits, facts.source
    )
    yield from _check_two_functions(script, settings, inits)


def _stated_urls(script: Script, inits: list[ast.Call]) -> Iterator[Setting]:
    """Yield the URLs that are passed to the init by processes which a launcher started."""
    started = [launch.function for launch in launches(script)]
    for init in inits:
        url, rank = call_argument(init, "init_method", 1), call_argument(init, "rank", 4)
        store = call_argument(init, "store", 5)
        store = resolve(script, store, into_functions=True) if store is not None else None
        if isinstance(store, ast.Call) and script.call_name(store.func) == _FILE_STORE:
            url = call_argument(store, "file_name", 0)
        if url is None or rank is None or integer(script, rank) is not None:
            continue
        # What the parent passes to the processes is the same in all of them.
        made_in = [f for f, _ in execution_frames(script, resolve(script, url))]
        if not started or (store is not None and any(f in started for f in made_in)):
            yield Setting(init, "init_method" if store is None else "the store's file", url)


def _check_own_choice(
    script: Script, settings: list[Setting], inits: list[ast.Call], source: str
) -> Iterator[Claim]:
    """Report a value that differs between processes, by chance or by their rank."""
    homes = {script.enclosing_function(call) for call in inits}
    spawned = bool(script.method_calls("spawn", "Process")) or "spawn(" in source
    for node, name, value in settings:
        by_rank = _is_computed_from_rank(value)
        text = _text_with_values(script, value)
        is_file = (name == "init_method" and "file:" in text) or name == "the store's file"
        is_file = is_file and _FILE_BY_PROCESS.search(text) is not None
        if name == "init_method":
            text = text.replace("gethostname", "")  # on one host, all have the same
        if not by_rank and not is_file and not _CHOSEN_BY_PROCESS.search(text):
            continue
        home = script.enclosing_function(node)
        if home not in homes or script.rank_condition(node) is not None:
            continue
        if home is None and spawned and not by_rank:
            continue
        how = "computes {} from its own rank" if by_rank else "chooses {} by itself"
        yield Claim(
            summary=f"each process {how.format(name)} before it joins: no two of them agree",
            evidence=(
                script.evidence_for(value if node in inits else node),
                script.evidence_for(inits[0]),
            ),
            fix='init_method="env://"   # MASTER_ADDR and MASTER_PORT are set once, for all ranks'
            if node in inits
            else f'os.environ["{name}"]   # set once, by the launcher, for all ranks',
            certainty=Certainty.LIKELY,
            where=script.place_of(node),
        )


def _text_with_values(script: Script, value: ast.expr) -> str:
    """Return the text of a value and of what its variables are assigned from."""
    variables = [n for n in ast.walk(value) if isinstance(n, ast.Name)]
    values = [value, *(resolve(script, v) for v in variables)]
    called = {ast.unparse(n.func) for v in values for n in ast.walk(v) if isinstance(n, ast.Call)}
    ports = [
        "free_port()"
        for name in called
        for function in script.functions_named(name)
        if _BINDS_ANY_PORT.search(ast.unparse(function))
    ]
    return " ".join([*(ast.unparse(v) for v in values), *ports])


def _is_computed_from_rank(value: ast.expr) -> bool:
    """Return True if the rank is added to, or put into, the value.

    A choice by the rank (`a if rank == 0 else b`, `hosts[rank]`) may be right.
    """
    for node in ast.walk(value):
        if isinstance(node, (ast.IfExp, ast.Compare, ast.Subscript, ast.FloorDiv)):
            return False
    parts = [
        part
        for node in ast.walk(value)
        if isinstance(node, (ast.BinOp, ast.FormattedValue))
        for part in ast.iter_child_nodes(node)
    ]
    return any(
        _RANK_NAME.fullmatch(p.id if isinstance(p, ast.Name) else p.attr)
        for part in parts
        for p in ast.walk(part)
        if isinstance(p, (ast.Name, ast.Attribute))
    )


def _check_two_functions(
    script: Script, settings: list[Setting], inits: list[ast.Call]
) -> Iterator[Claim]:
    """Report two functions that join as different ranks, at different meeting points."""
    first_settings: dict[str, tuple[ast.AST, str, Function]] = {}
    ranks = {script.enclosing_function(call): _literal_rank(call) for call in inits}
    for node, name, value in settings:
        home = script.enclosing_function(node)
        if home is None or ranks.get(home) is None or not isinstance(value, ast.Constant):
            continue
        text = str(value.value)
        earlier = first_settings.setdefault(name, (node, text, home))
        differ = earlier[1] != text and ranks[earlier[2]] != ranks[home]
        # Rank 0 may use localhost for itself: its store listens on all addresses.
        if not differ or (
            name == "MASTER_ADDR" and (is_this_host_alone(text) or is_this_host_alone(earlier[1]))
        ):
            continue
        yield Claim(
            summary=f"{home.name} sets {name} to {text}, {earlier[2].name} to {earlier[1]}: "
            f"ranks {ranks[earlier[2]]} and {ranks[home]} will not meet",
            evidence=(script.evidence_for(node), script.evidence_for(earlier[0])),
            fix=f'os.environ["{name}"] = "{earlier[1]}"',
            certainty=Certainty.LIKELY,
            where=script.place_of(node),
        )


def _literal_rank(call: ast.Call) -> int | None:
    rank_argument = call_argument(call, "rank", 4)
    value = rank_argument.value if isinstance(rank_argument, ast.Constant) else None
    return value if isinstance(value, int) else None


_SETUP = """import os, random
import torch.distributed as dist
import torch.multiprocessing as mp
def setup(rank):
    INSIDE
    dist.init_process_group("gloo", rank=rank, world_size=2)
"""
_RANDOM_PORT = "os.environ['MASTER_PORT'] = str(random.randint(20000, 30000))"
_URL = """import os, socket, tempfile
import torch.distributed as dist
def pick():
    s = socket.socket()
    s.bind(("", 0))
    return s.getsockname()[1]
dist.init_process_group("gloo", init_method=PLACE, rank=int(os.environ['SLURM_PROCID']), world_size=4)
"""
_TWO_FUNCTIONS = """import os
import torch.distributed as dist
def first():
    os.environ["MASTER_PORT"] = "29500"
    dist.init_process_group("gloo", rank=0, world_size=2)
def second():
    os.environ["MASTER_PORT"] = "29501"
    dist.init_process_group("gloo", rank=1, world_size=2)
"""

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "each process puts a free port that it found into the init URL": (
            ScriptFacts(source=_URL.replace("PLACE", "f'tcp://127.0.0.1:{pick()}'")),
            "each process chooses init_method by itself before it joins: no two of them agree",
        ),
        "each process puts a temporary file of its own into the init URL": (
            ScriptFacts(source=_URL.replace("PLACE", "'file://' + tempfile.mktemp()")),
            "each process chooses init_method by itself before it joins: no two of them agree",
        ),
        "each process sets MASTER_PORT to a free port that it found": (
            ScriptFacts(
                source="import os\nimport torch.distributed as dist\nport = find_free_port()\n"
                "os.environ['MASTER_PORT'] = str(port)\ndist.init_process_group('gloo')\n"
            ),
            "each process chooses MASTER_PORT by itself before it joins: no two of them agree",
        ),
        "each process sets MASTER_PORT to a random number": (
            ScriptFacts(source=_SETUP.replace("INSIDE", _RANDOM_PORT)),
            "each process chooses MASTER_PORT by itself before it joins: no two of them agree",
        ),
        "each process adds its own rank to MASTER_PORT": (
            ScriptFacts(
                source=_SETUP.replace("INSIDE", "os.environ['MASTER_PORT'] = str(29500 + rank)")
            ),
            "each process computes MASTER_PORT from its own rank before it joins: no two of them agree",
        ),
        "the functions of two ranks set different ports": (
            ScriptFacts(source=_TWO_FUNCTIONS),
            "second sets MASTER_PORT to 29501, first to 29500: ranks 0 and 1 will not meet",
        ),
    },
    silent_on={
        "a temporary file in a script that is always rank 0": ScriptFacts(
            source=_URL.replace("PLACE", "'file://' + tempfile.mktemp()").replace(
                "rank=int(os.environ['SLURM_PROCID'])", "rank=0"
            )
        ),
        "an init URL with a port that the script does not choose": ScriptFacts(
            source=_URL.replace("PLACE", "f'tcp://127.0.0.1:{port}'")
        ),
        "MASTER_PORT is taken from a variable of the launcher": ScriptFacts(
            source="import os\nimport torch.distributed as dist\nport = int(os.environ['JOB_PORT'])\n"
            "os.environ['MASTER_PORT'] = str(port)\ndist.init_process_group('gloo')\n"
        ),
        "the parent sets a random MASTER_PORT before it spawns the processes": ScriptFacts(
            source=_SETUP.replace("INSIDE", "pass")
            + f"def main():\n    {_RANDOM_PORT}\n    mp.spawn(setup, nprocs=2)\n"
        ),
        "each process sets MASTER_PORT to the same constant": ScriptFacts(
            source=_SETUP.replace("INSIDE", "os.environ['MASTER_PORT'] = '29500'")
        ),
        "MASTER_ADDR is one of two fixed names, by the rank": ScriptFacts(
            source=_SETUP.replace(
                "INSIDE", "os.environ['MASTER_ADDR'] = 'localhost' if rank == 0 else 'node0'"
            )
        ),
        "one port for each group of eight ranks": ScriptFacts(
            source=_SETUP.replace("INSIDE", "os.environ['MASTER_PORT'] = str(29500 + rank // 8)")
        ),
        "a port that is computed from Slurm's job id": ScriptFacts(
            source=_SETUP.replace(
                "INSIDE",
                "os.environ['MASTER_PORT'] = str(10000 + int(os.environ['SLURM_JOB_ID']) % 9000)",
            )
        ),
        "the functions of two ranks set the same port": ScriptFacts(
            source=_TWO_FUNCTIONS.replace("29501", "29500")
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
