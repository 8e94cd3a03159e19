"""Arrays that the processes of a JAX job make or read differently: each rule reports one of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.facts import Certainty, Claim, ScriptFacts
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script
from allaboard.formats.python.script_rule import script_rule

_INITIALIZE = "jax.distributed.initialize"
_FROM_LOCAL = (
    "jax.make_array_from_process_local_data",
    "jax.experimental.multihost_utils.host_local_array_to_global_array",
)
_LONGEST = re.compile(r"max\(\(?(?:len\(\w+\) for |map\(len,|\[len\()")
_FETCHES = ("numpy.asarray", "numpy.array", "jax.device_get")
_KEYS = ("jax.random.key", "jax.random.PRNGKey")
_DIFFERS = ("jax.process_index", "time.time", "time.time_ns", "os.getpid")
"""Calls whose values differ between processes."""
_JITS = ("jax.jit", "jax.experimental.pjit.pjit")


def _own_length(facts: ScriptFacts) -> Iterator[Claim]:
    if "local" not in facts.source or not _LONGEST.search(facts.source):
        return
    if "process_index" not in facts.source or "allgather" in facts.source:
        return
    script = read_script(facts)
    for call in script.calls_of(*_FROM_LOCAL):
        position = 1 if call.func and ast.unparse(call.func).endswith("local_data") else 0
        argument = call_argument(call, "local_data", position)
        value = resolve(script, argument) if argument is not None else None
        maker = value.func if isinstance(value, ast.Call) else None
        functions = script.functions_named(maker.id) if isinstance(maker, ast.Name) else []
        longest = [
            n
            for f in functions
            for n in ast.walk(f)
            if isinstance(n, ast.Assign) and _LONGEST.match(ast.unparse(n.value))
        ]
        if len(functions) != 1 or not longest:
            continue
        name = ast.unparse(longest[0].targets[0])
        yield Claim(
            summary="each process pads to the longest item of its own batch: they pass arrays of different "
            "shapes to one computation, which hangs or mixes the batches up",
            evidence=(script.evidence_for(longest[0]), script.evidence_for(call)),
            fix=f"{name} = MAX_LENGTH   # the same on every process",
            certainty=Certainty.LIKELY,
            where=script.place_of(longest[0]),
        )
        return


def _fetched_whole(facts: ScriptFacts) -> Iterator[Claim]:
    if _INITIALIZE not in facts.source or "process_allgather" in facts.source:
        return
    script = read_script(facts)
    for call in script.calls_of(*_FETCHES):
        argument = call.args[0] if call.args else None
        value = resolve(script, argument) if isinstance(argument, ast.Name) else None
        sharding = _sharding_of(script, value)
        if argument is None or sharding is None or script.rank_condition(call) is not None:
            continue
        yield Claim(
            summary=f"{ast.unparse(argument)} is spread over the devices of all processes: JAX does not "
            "fetch what other processes hold, and ends this with an error",
            evidence=(script.evidence_for(call), script.evidence_for(sharding)),
            fix=f"multihost_utils.process_allgather({ast.unparse(argument)}, tiled=True)   # on all",
            certainty=Certainty.LIKELY,
            where=script.place_of(call),
        )
        return


def _sharding_of(script: Script, value: ast.expr | None) -> ast.expr | None:
    """Return the sharding over an axis that an array has; None if it has none, or it is not known."""
    if not isinstance(value, ast.Call):
        return None
    name = script.call_name(value.func)
    sharding = call_argument(value, "sharding", 0) if name == _FROM_LOCAL[0] else None
    if isinstance(value.func, ast.Name):
        jitted = script.ranks.bound_values(value.func)
        jit = jitted[0] if len(jitted) == 1 else None
        if isinstance(jit, ast.Call) and script.call_name(jit.func) in _JITS:
            sharding = call_argument(jit, "out_shardings")
    resolved = resolve(script, sharding) if sharding is not None else None
    if not isinstance(resolved, ast.Call) or len(resolved.args) < 2:
        return None
    spec = resolve(script, resolved.args[1])
    is_split = isinstance(spec, ast.Call) and any(
        isinstance(a, ast.Constant) and isinstance(a.value, str) for a in spec.args
    )
    return resolved if is_split else None


def _seed_of_each(facts: ScriptFacts) -> Iterator[Claim]:
    if _INITIALIZE not in facts.source or "broadcast_one_to_all" in facts.source:
        return
    script = read_script(facts)
    for call in script.method_calls("init"):
        key = next((n for a in call.args for n in ast.walk(a) if _is_key(script, n)), None)
        if not isinstance(key, ast.Call) or not key.args:
            continue
        seed = resolve(script, key.args[0])
        origin = next(
            (
                n
                for n in ast.walk(seed)
                if isinstance(n, ast.Call) and script.call_name(n.func) in _DIFFERS
            ),
            None,
        )
        if origin is None:
            continue
        yield Claim(
            summary=f"{ast.unparse(origin)} is another on each process, and the model's parameters are made "
            "of it: the processes begin with different models",
            evidence=(script.evidence_for(call), script.evidence_for(origin)),
            fix="multihost_utils.broadcast_one_to_all(seed)   # or one number, the same on every process",
            certainty=Certainty.LIKELY,
            where=script.place_of(origin),
        )
        return


def _is_key(script: Script, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and script.call_name(node.func) in _KEYS


_SEEDED = """import jax
import time
jax.distributed.initialize()
seed = int(time.time())
params = net.init(jax.random.key(seed), x)
"""
_PADDED = """import jax
import numpy as np
jax.distributed.initialize()
def pad(batch):
    longest = max(len(s) for s in batch)
    return np.stack([np.pad(s, (0, longest - len(s))) for s in batch])
local = read(jax.process_index())
for batch in local:
    tokens = pad(batch)
    state = step(state, jax.make_array_from_process_local_data(sharding, tokens))
"""
_FETCHED = """import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
jax.distributed.initialize()
mesh = Mesh(np.array(jax.devices()), ("data",))
sharding = NamedSharding(mesh, P("data"))
embed = jax.jit(encode, out_shardings=sharding)
features = embed(images)
host = np.asarray(features)
"""

RULES = {
    "code118_padded_by_each": script_rule(
        page="""Each process of a JAX job pads its batch to a length of its own.

## Why it matters
All processes must run one computation on arrays of one shape. Where each pads to the longest item that it
happens to have, the shapes differ between the processes: they compile different programs, and hang or
exchange the wrong values. JAX's page on multiple processes warns of it.

## What to do
Pad to a length that is the same everywhere, or to one that all have agreed on by `process_allgather`.
""",
        check=_own_length,
        fires_on={
            "padded to the longest of the own batch": (
                _PADDED,
                "each process pads to the longest item of its own batch: they pass arrays of different "
                "shapes to one computation, which hangs or mixes the batches up",
            )
        },
        silent_on={
            "padded to a constant": _PADDED.replace("max(len(s) for s in batch)", "512"),
            "the processes agree on a length": _PADDED.replace(
                "    return np", "    longest = process_allgather(longest).max()\n    return np"
            ),
            "a batch that is no global array": _PADDED.replace(
                "jax.make_array_from_process_local_data(sharding, tokens)", "tokens"
            ),
        },
    ),
    "code119_fetched_whole": script_rule(
        page="""An array that is spread over all processes is fetched by one of them.

## Why it matters
A process can read the shards of its own devices alone. `np.asarray` of an array with shards elsewhere ends
with "Fetching value for `jax.Array` that spans non-addressable devices is not possible".

## What to do
`multihost_utils.process_allgather(x, tiled=True)` on every process, or `x.addressable_shards`.
""",
        check=_fetched_whole,
        fires_on={
            "the output of a sharded jit": (
                _FETCHED,
                "features is spread over the devices of all processes: JAX does not fetch what other "
                "processes hold, and ends this with an error",
            )
        },
        silent_on={
            "it is gathered first": _FETCHED.replace(
                "np.asarray(features)", "process_allgather(features)"
            ),
            "the same on every device": _FETCHED.replace('P("data"))', "P())"),
            "a job of one process": _FETCHED.replace("jax.distributed.initialize()\n", ""),
            "a shard of its own": _FETCHED.replace(
                "asarray(features)", "asarray(features.addressable_data(0))"
            ),
        },
    ),
    "code125_seed_of_each": script_rule(
        page="""The parameters of a JAX job are made of a seed that each process has for itself.

## Why it matters
Every process makes the parameters and puts them onto its own devices; JAX takes them for one replicated
array and does not compare them. With a clock or the process number as the seed, each process trains another
model, and the gradients that they average belong to none of them.

## What to do
One seed for the parameters on every process; fold `process_index` only into keys for data and dropout.
""",
        check=_seed_of_each,
        fires_on={
            "the clock as the seed": (
                _SEEDED,
                "time.time() is another on each process, and the model's parameters are made of it: the "
                "processes begin with different models",
            )
        },
        silent_on={
            "one number for all": _SEEDED.replace("int(time.time())", "42"),
            "process 0 hands on its seed": _SEEDED.replace(
                "int(time.time())", "broadcast_one_to_all(int(time.time()))"
            ),
            "a key for the data": _SEEDED.replace("net.init(", "shuffle("),
            "a job of one process": _SEEDED.replace("jax.distributed.initialize()\n", ""),
        },
    ),
}
