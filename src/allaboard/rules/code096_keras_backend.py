"""Keras's `keras.distribution` is used with another backend than JAX.

## Why it matters
`keras.distribution` places variables and batches with the JAX backend alone. With TensorFlow,
`set_distribution` is accepted and has no effect: `fit` trains on one device, and nothing says so. With
PyTorch, it is refused. Keras chooses its backend when it is imported: a KERAS_BACKEND that is set later is
not read.

## What to do
`os.environ["KERAS_BACKEND"] = "jax"` above `import keras`. With TensorFlow, make the model inside of
`tf.distribute.MirroredStrategy().scope()`; with PyTorch, use DistributedDataParallel.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity, Stage
from allaboard.formats.python.resolution import resolve
from allaboard.formats.python.script_ast import Script, call_argument, read_script

_USES = tuple(
    f"{keras}.distribution.{name}"
    for keras in ("keras", "tensorflow.keras")
    for name in ("set_distribution", "DataParallel", "ModelParallel", "initialize")
)

_SETS = re.compile(r"(?:os\.)?environ\[['\"]KERAS_BACKEND['\"]\]")
"""Matches the variable in this process's own environment."""


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if "distribution" not in facts.source or "keras" not in facts.source:
        return
    script = read_script(facts)
    uses = script.calls_of(*_USES)
    if not uses:
        return
    chosen = [(n, v) for n, v in _choices(script) if script.enclosing_function(n) is None]
    if len(chosen) != 1 or any(
        isinstance(a, (ast.If, ast.Try)) for a in script.ancestors(chosen[0][0])
    ):
        return
    if any(
        isinstance(a, (ast.If, ast.IfExp)) and "backend" in ast.unparse(a.test)
        for u in uses
        for a in script.ancestors(u)
    ):
        return  # only where it is the right one
    node, backend = chosen[0]
    imports = [
        n
        for n in ast.walk(script.tree)
        if isinstance(n, (ast.Import, ast.ImportFrom)) and script.enclosing_function(n) is None
    ]
    imported = min((n.lineno for n in imports if _imports_keras(n)), default=0)
    if backend == "jax" and not 0 < imported < node.lineno:
        return
    is_late = backend == "jax"
    yield Claim(
        summary=f"KERAS_BACKEND is set below the import of Keras in line {imported}, which has chosen its "
        "backend then: keras.distribution works with JAX alone"
        if is_late
        else f"keras.distribution works with the JAX backend alone, and this script chooses {backend}: the "
        "model trains on one device",
        evidence=(script.evidence_for(node), script.evidence_for(uses[0])),
        fix=f'os.environ["KERAS_BACKEND"] = "jax"   # above line {imported}'
        if is_late or backend != "tensorflow"
        else 'os.environ["KERAS_BACKEND"] = "jax"   # or tf.distribute.MirroredStrategy().scope()',
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(node),
    )


def _choices(script: Script) -> Iterator[tuple[ast.stmt, str]]:
    """Yield where the script sets KERAS_BACKEND, and to what."""
    for node in script.parents:
        value: ast.expr | None = None
        if isinstance(node, ast.Assign) and _SETS.fullmatch(ast.unparse(node.targets[0])):
            value = node.value
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = ast.unparse(node.value.func)
            if name == "os.environ.setdefault" and "KERAS_BACKEND" in ast.unparse(node.value):
                value = call_argument(node.value, "value", 1)
        text = resolve(script, value) if value is not None else None
        if isinstance(node, (ast.Assign, ast.Expr)) and isinstance(text, ast.Constant):
            yield node, str(text.value)


def _imports_keras(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.Import):
        return any(a.name.split(".")[0] == "keras" for a in node.names)
    return (node.module or "").split(".")[0] == "keras"


_USED = (
    "import os\nos.environ['KERAS_BACKEND'] = 'tensorflow'\nimport keras\n"
    "keras.distribution.set_distribution(keras.distribution.DataParallel())\n"
)

RULE = Rule(
    stage=Stage.CONFIG,
    reads=ScriptFacts,
    check=check,
    fires_on={
        "the backend is TensorFlow": (
            ScriptFacts(source=_USED),
            "keras.distribution works with the JAX backend alone, and this script chooses tensorflow: the "
            "model trains on one device",
        ),
        "the backend is set below the import": (
            ScriptFacts(
                source="import os\nimport keras\nos.environ['KERAS_BACKEND'] = 'jax'\n"
                "keras.distribution.set_distribution(keras.distribution.DataParallel())\n"
            ),
            "KERAS_BACKEND is set below the import of Keras in line 2, which has chosen its backend then: "
            "keras.distribution works with JAX alone",
        ),
    },
    silent_on={
        "the backend is JAX": ScriptFacts(source=_USED.replace("tensorflow", "jax")),
        "whoever runs the script chooses the backend": ScriptFacts(
            source=_USED.replace("os.environ['KERAS_BACKEND'] = 'tensorflow'\n", "")
        ),
        "another backend uses no distribution": ScriptFacts(
            source=_USED.replace("keras.dist", "if keras.backend.backend() == 'jax': keras.dist", 1)
        ),
        "the environment of another process": ScriptFacts(
            source=_USED.replace("os.environ[", "env[")
        ),
        "a function that imports Keras": ScriptFacts(
            source="import os\ndef late():\n    import keras\n" + _USED.replace("tensorflow", "jax")
        ),
        "a strategy of TensorFlow": ScriptFacts(
            source=_USED.replace(
                "keras.distribution.set_distribution(keras.distribution.DataParallel())",
                "strategy = tf.distribute.MirroredStrategy()",
            )
        ),
    },
    since="0.1",
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
