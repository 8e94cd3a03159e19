"""TF_CONFIG is set after the strategy was created.

## Why it matters
A strategy reads TF_CONFIG when it is created. A value that is set later is not read: the worker silently
trains alone. Setting it after `import tensorflow` but before the strategy is early enough; that is not
reported.

## What to do
Move the assignment before the strategy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts

_TF_CONFIG_READERS = (
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
    "TFConfigClusterResolver",
)


def check(facts: ScriptFacts) -> Iterator[Claim]:
    if (
        "TF_CONFIG" not in facts.source or facts.is_notebook
    ):  # there it may be for a `!python` below
        return
    from allaboard.formats.python.script_ast import (
        read_script,  # slow to import, and not needed without a script
    )

    script = read_script(facts)
    readers = [n for name, n in script.calls if name.rpartition(".")[2] in _TF_CONFIG_READERS]
    if not readers:
        return
    first_reader = readers[0]
    from allaboard.formats.python.environment_writes import environment_writes
    from allaboard.formats.python.flow.execution_order import execution_frames, runs_before

    writes = [w.node for w in environment_writes(script, "TF_CONFIG")]
    here = script.enclosing_function(first_reader)
    beside = [n for n in writes if script.enclosing_function(n) is here]
    if beside:
        writes = beside
        is_late = all(n.lineno > first_reader.lineno for n in writes)
    else:
        # In functions that are called later, and all of whose calls are seen.
        is_late = all(
            execution_frames(script, n)[-1:][0][0] is None and runs_before(script, first_reader, n)
            for n in writes
        )
    if not writes or not is_late:
        return
    if any(isinstance(a, (ast.For, ast.While)) for a in script.ancestors(first_reader)):
        return
    name = script.call_name(first_reader.func).rpartition(".")[2]
    yield Claim(
        summary=f"TF_CONFIG is set after {name} was created, which has already read it",
        evidence=(script.evidence_for(writes[0]), script.evidence_for(first_reader)),
        fix=f"{script.source_line(writes[0])}   # before line {first_reader.lineno}"
        if beside
        else f"{script.source_line(first_reader)}   # once TF_CONFIG is set, after line {writes[0].lineno}",
        certainty=Certainty.LIKELY,
        where=script.place_of(writes[0]),
    )


_IMPORT = "import os\nimport tensorflow as tf\n"
_MAKE = "strategy = tf.distribute.MultiWorkerMirroredStrategy()\n"
_SET = "os.environ['TF_CONFIG'] = text\n"
_IN_FUNCTION = "def configure():\n    os.environ.update(TF_CONFIG=text)\n"

RULE = Rule(
    reads=ScriptFacts,
    check=check,
    fires_on={
        "TF_CONFIG is set after the strategy is created": (
            ScriptFacts(source=_IMPORT + _MAKE + _SET),
            "TF_CONFIG is set after MultiWorkerMirroredStrategy was created, which has already read it",
        ),
        "TF_CONFIG is set in a function that is called after the strategy is created": (
            ScriptFacts(source=_IMPORT + _MAKE + _IN_FUNCTION + "configure()\n"),
            "TF_CONFIG is set after MultiWorkerMirroredStrategy was created, which has already read it",
        ),
    },
    silent_on={
        "TF_CONFIG is set in a function that is called before the strategy is created": ScriptFacts(
            source=_IMPORT + _IN_FUNCTION + "configure()\n" + _MAKE
        ),
        "TF_CONFIG is set after the import of TensorFlow, but before the strategy": ScriptFacts(
            source=_IMPORT + _SET + _MAKE
        ),
        "a notebook sets TF_CONFIG, perhaps for a script that it starts": ScriptFacts(
            source=_IMPORT + _MAKE + _SET, is_notebook=True
        ),
    },
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
