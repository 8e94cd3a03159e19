"""JAX is used before `jax.distributed.initialize`.

## Why it matters
The first query for devices, or the first array, starts JAX's backend for this process alone. An
initialisation after it is refused ("jax.distributed.initialize() must be called before any JAX calls that
might initialise the XLA backend"); early versions did not notice, and each process kept its own devices.

## What to do
Call `jax.distributed.initialize()` first, above every `jax.devices()`, `jax.process_count()` and `jnp.array`,
also those at the top of a module that the script imports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Stage
from allaboard.formats.python.flow.execution_order import certainly_runs_before
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_STARTS_BACKEND = re.compile(
    r"keras\.distribution\.list_devices|jax\.(?:(?:local_)?devices|(?:local_)?device_count|process_index|process_count|device_put|default_backend"
    r"|random\.(?:PRNGKey|key|split|normal|uniform)"
    r"|numpy\.(?:array|asarray|zeros|ones|full|arange|eye|linspace)(?:_like)?)"
)
"""Calls that start the backend."""
_INITIALISERS = (
    "jax.distributed.initialize",
    "keras.distribution.initialize",  # which calls the first one where Keras runs on JAX
)


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "jax" not in facts.source or "distribut" not in facts.source:
        return
    script = read_script(facts)
    starts = script.calls_of(*_INITIALISERS)
    if len(starts) != 1 or _is_of_one(starts[0]):
        return
    use = next(_earlier_uses(script, starts[0]), None)
    if use is None:
        return
    short = ast.unparse(use.func)
    yield Claim(
        summary=f"{short} starts JAX for this process alone, before "
        f"{script.call_name(starts[0].func)}",
        evidence=(script.evidence_for(use), script.evidence_for(starts[0])),
        fix=f"{ast.unparse(starts[0])[:100]}   # above line {use.lineno}",
        certainty=Certainty.LIKELY,
        where=script.place_of(use),
    )


def _is_of_one(start: ast.Call) -> bool:
    """Return True for a job of one process, as in a trial: it has nobody to meet."""
    count = call_argument(start, "num_processes", 1)
    return isinstance(count, ast.Constant) and count.value == 1


def _earlier_uses(script: Script, start: ast.Call) -> Iterator[ast.Call]:
    """Yield the calls that start the backend, and certainly run before."""
    function = script.enclosing_function(start)
    conditions = (ast.If, ast.IfExp, ast.Try, ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)
    for name, call in script.calls:
        if not _STARTS_BACKEND.fullmatch(name):
            continue
        # Who calls the function of the start may be unknown; what stands above it runs first.
        is_above = function is not None and call.lineno < function.lineno
        at_the_top = not any(isinstance(a, conditions) for a in script.ancestors(call))
        if (is_above and at_the_top) or certainly_runs_before(script, call, start):
            yield call


_HEAD = "import jax\nimport jax.numpy as jnp\n"
RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "`jax.local_devices()` before the initialisation": (
            ScriptFacts(
                source=_HEAD + "print(jax.local_devices())\njax.distributed.initialize()\n"
            ),
            "jax.local_devices starts JAX for this process alone, before jax.distributed.initialize",
        ),
        "`jax.process_count()` in the condition for the initialisation": (
            ScriptFacts(
                source=_HEAD + "def main():\n    if jax.process_count() > 1:\n"
                "        jax.distributed.initialize()\nmain()\n"
            ),
            "jax.process_count starts JAX for this process alone, before jax.distributed.initialize",
        ),
        "`jax.random.PRNGKey` for a constant at the top of the script": (
            ScriptFacts(
                source=_HEAD
                + "KEY = jax.random.PRNGKey(0)\ndef main():\n    jax.distributed.initialize()\n"
            ),
            "jax.random.PRNGKey starts JAX for this process alone, before jax.distributed.initialize",
        ),
        "`jax.devices()` before Keras's initialisation": (
            ScriptFacts(
                source=_HEAD
                + "import keras\nprint(jax.devices())\nkeras.distribution.initialize()\n"
            ),
            "jax.devices starts JAX for this process alone, before keras.distribution.initialize",
        ),
    },
    silent_on={
        "`jax.devices()` before the initialisation of a job of one process": ScriptFacts(
            source=_HEAD
            + "print(jax.devices())\njax.distributed.initialize('localhost:8889', num_processes=1)\n"
        ),
        "`jax.config.update` before the initialisation": ScriptFacts(
            source=_HEAD
            + "jax.config.update('jax_platforms', 'cpu')\njax.distributed.initialize()\n"
        ),
        "`jax.devices()` after the initialisation": ScriptFacts(
            source=_HEAD + "jax.distributed.initialize()\nprint(jax.devices())\n"
        ),
        "`jax.devices()` in a function that is called after the initialisation": ScriptFacts(
            source=_HEAD
            + "def show():\n    print(jax.devices())\njax.distributed.initialize()\nshow()\n"
        ),
        "`jax.devices()` at the end of the script": ScriptFacts(
            source=_HEAD
            + "def main():\n    jax.distributed.initialize()\nmain()\nprint(jax.devices())\n"
        ),
        "a script without `jax.distributed.initialize`": ScriptFacts(
            source=_HEAD + "print(jax.devices())\n"
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
