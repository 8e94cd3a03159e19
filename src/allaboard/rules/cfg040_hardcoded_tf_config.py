"""The script sets TF_CONFIG itself, including the task's identity, and ignores the environment.

## Why it matters
Started on every host, such a script is worker 0 everywhere. Whatever a launcher or an operator put into
TF_CONFIG is lost. As a demonstration on one machine it is fine, so this is a warning, and only if the
cluster is on several hosts.

## What to do
Take the index from outside: `int(os.environ["WORKER_INDEX"])`, or an argument. Or leave TF_CONFIG to the
launcher.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from allaboard.contracts import Rule
from allaboard.facts import Certainty, Claim, ScriptFacts, Severity
from allaboard.facts.address import is_this_host_alone, parse_address

if TYPE_CHECKING:
    from allaboard.formats.python.script_ast import Script
    from allaboard.formats.python.written_tf_config import WrittenTfConfig


def check(facts: ScriptFacts) -> Iterator[Claim]:
    # Of a notebook, each cell may be for another member.
    if "TF_CONFIG" not in facts.source or facts.is_notebook:
        return
    from allaboard.formats.python.script_ast import (
        read_script,  # slow to import, and not needed without a script
    )
    from allaboard.formats.python.written_tf_config import written_tf_configs

    script = read_script(facts)
    written = list(written_tf_configs(script))
    if len(written) == 1 and not _is_guarded(script, written[0].statement):
        yield from _fixed_index(script, written[0])
    literals = _literal_variables(script)
    if overwritten := _overwritten(script, literals):
        yield _overwritten_claim(script, *overwritten)
        return
    for node in ast.walk(script.tree):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Subscript):
            continue
        if "'TF_CONFIG'" not in ast.unparse(node.targets[0]) or _is_guarded(script, node):
            continue
        spec = _literal_tf_config(node.value, literals)
        if spec is None:
            continue
        task, cluster = spec.get("task"), spec.get("cluster")
        if not isinstance(task, dict) or type(task.get("index")) is not int:
            continue
        if not isinstance(cluster, dict) or not _has_several_hosts(cluster):
            continue
        yield _claim(script, node, f"{task.get('type', 'worker')} {task['index']}")


def _overwritten(
    script: Script, literals: dict[str, object]
) -> tuple[ast.Assign, ast.Assign, str] | None:
    """Return two settings of TF_CONFIG for different tasks of which the second replaces the first before
    anything uses it, and the task that remains."""
    earlier: tuple[ast.Assign, object] | None = None
    for node in sorted(
        (n for n in script.parents if isinstance(n, ast.Assign)), key=lambda n: n.lineno
    ):
        if not ast.unparse(node.targets[0]).endswith("environ['TF_CONFIG']"):
            continue
        task = (_literal_tf_config(node.value, literals) or {}).get("task")
        if not isinstance(task, dict):
            earlier = None
            continue
        if (
            earlier is not None
            and earlier[1] != task
            and _follows_unused(script, earlier[0], node)
            and not _is_guarded(script, node)
        ):
            return earlier[0], node, f"{task.get('type', 'worker')} {task.get('index', 0)}"
        earlier = node, task
    return None


def _follows_unused(script: Script, first: ast.Assign, second: ast.Assign) -> bool:
    """Return True if both stand in one block, with nothing between them that runs anything."""
    block = getattr(script.parents.get(first), "body", None)
    if not isinstance(block, list) or first not in block or second not in block:
        return False
    between = block[block.index(first) + 1 : block.index(second)]
    calls = (c for s in between for c in ast.walk(s) if isinstance(c, ast.Call))
    return all(ast.unparse(c.func) in ("print", "json.dumps", "dumps") for c in calls)


def _overwritten_claim(script: Script, first: ast.Assign, second: ast.Assign, task: str) -> Claim:
    return Claim(
        summary=f"TF_CONFIG is set twice, and the second replaces the first: every process that runs the "
        f"script is {task}",
        evidence=(script.evidence_for(second), script.evidence_for(first)),
        fix='"index": int(os.environ["WORKER_INDEX"])   # one TF_CONFIG, and the task from outside',
        severity=Severity.ERROR,
        certainty=Certainty.LIKELY,
        where=script.place_of(second),
    )


def _claim(script: Script, node: ast.AST, task: str) -> Claim:
    return Claim(
        summary=f"the script sets TF_CONFIG itself: every process that runs it is {task}",
        evidence=(script.evidence_for(node),),
        fix='"index": int(os.environ["WORKER_INDEX"])',
        severity=Severity.WARNING,
        certainty=Certainty.LIKELY,
        where=script.place_of(node),
    )


def _fixed_index(script: Script, written: WrittenTfConfig) -> Iterator[Claim]:
    """Report a worker's index that is constant, where the cluster comes from elsewhere."""
    from allaboard.formats.python.evaluation import evaluate, integer
    from allaboard.formats.python.flow.fixed_ranks import is_unconditional
    from allaboard.formats.python.resolution import resolve
    from allaboard.formats.python.written_tf_config import dict_entries

    if written.is_literal or not is_unconditional(script, written.statement):
        return
    task = dict_entries(script, written.entries["task"][1]) if "task" in written.entries else None
    if not task or "index" not in task or "type" not in task:
        return
    index, role = integer(script, task["index"][1]), evaluate(script, task["type"][1])
    cluster = written.entries.get("cluster")
    jobs = dict_entries(script, cluster[1]) if cluster is not None else None
    listed = resolve(script, jobs["worker"][1]) if jobs and "worker" in jobs else None
    alone = isinstance(listed, ast.List) and (
        len(listed.elts) < 2 or "localhost" in ast.unparse(listed)
    )
    if index is None or role != "worker" or cluster is None or alone:
        return
    yield _claim(script, task["index"][0], f"worker {index}")


def _literal_variables(script: Script) -> dict[str, object]:
    """Return the literals of the names that the script assigns exactly once, by name."""
    literals: dict[str, object] = {}
    assignments: dict[str, int] = {}
    for node in ast.walk(script.tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            base = ast.unparse(node).partition("[")[0]
            assignments[base] = assignments.get(base, 0) + 2
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            assignments[name] = assignments.get(name, 0) + 1
            try:
                literals[name] = ast.literal_eval(node.value)
            except (ValueError, TypeError, RecursionError):
                assignments[name] += 1
    return {name: value for name, value in literals.items() if assignments.get(name) == 1}


def _literal_tf_config(value: ast.expr, literals: dict[str, object]) -> dict[str, object] | None:
    import json

    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("dumps") and value.args:
        argument = value.args[0]
        if isinstance(argument, ast.Name):
            value_of_name = literals.get(argument.id)
            return value_of_name if isinstance(value_of_name, dict) else None
        try:
            literal = ast.literal_eval(argument)
        except (ValueError, TypeError, RecursionError):
            return None
        return literal if isinstance(literal, dict) else None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        try:
            parsed = json.loads(value.value)
        except (ValueError, RecursionError):
            return None
        return parsed if isinstance(parsed, dict) else None
    return None


def _is_guarded(script: Script, node: ast.AST) -> bool:
    """Return True if the script does it only when TF_CONFIG is not set."""
    return any(
        isinstance(above, ast.If) and "TF_CONFIG" in ast.unparse(above.test)
        for above in script.ancestors(node)
    )


def _has_several_hosts(cluster: dict[object, object]) -> bool:
    hosts = {
        parse_address(address).host
        for tasks in cluster.values()
        if isinstance(tasks, list)
        for address in tasks
        if isinstance(address, str)
    }
    return len(hosts) > 1 and not all(is_this_host_alone(h) for h in hosts)


_SET = """import json, os
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": ["HOST0:2222", "HOST1:2222"]},
    "task": {"type": "worker", "index": INDEX},
})
"""


def _script(index: str, first_host: str = "10.0.0.1", second_host: str = "10.0.0.2") -> ScriptFacts:
    text = _SET.replace("INDEX", index).replace("HOST0", first_host).replace("HOST1", second_host)
    return ScriptFacts(source=text)


_HOSTS = """import json, os
from sys import argv
os.environ["TF_CONFIG"] = json.dumps({
    "cluster": {"worker": argv[1].split()},
    "task": {"type": "worker", "index": 0},
})
"""

_TWO = "import json, os\n" + "# then\n".join(
    "os.environ['TF_CONFIG'] = json.dumps({'cluster': {'worker': ['localhost:1', 'localhost:2']}, "
    f"'task': {{'type': 'worker', 'index': {index}}}}})\n"
    for index in (0, 1)
)

RULE = Rule(
    reads=ScriptFacts,
    check=check,
    fires_on={
        "the index is 0 in a cluster of two hosts": (
            _script("0"),
            "the script sets TF_CONFIG itself: every process that runs it is worker 0",
        ),
        "one script sets TF_CONFIG for worker 0 and then for worker 1": (
            ScriptFacts(source=_TWO),
            "TF_CONFIG is set twice, and the second replaces the first: every process that runs the "
            "script is worker 1",
        ),
        "the hosts are arguments, and the index is fixed": (
            ScriptFacts(source=_HOSTS),
            "the script sets TF_CONFIG itself: every process that runs it is worker 0",
        ),
    },
    silent_on={
        "a script that sets TF_CONFIG, starts a process, and sets TF_CONFIG again": ScriptFacts(
            source=_TWO.replace("# then", "Popen(['python', 'w.py'])")
        ),
        "a TF_CONFIG in each of two branches, of which one runs": ScriptFacts(
            source="import json, os, sys\nif sys.argv[1] == '0':\n    "
            + _TWO.partition("\n")[2].replace("# then\n", "else:\n    ")
        ),
        "the hosts and the index are arguments": ScriptFacts(
            source=_HOSTS.replace(": 0", ": int(argv[2])")
        ),
        "a cluster of one worker": ScriptFacts(
            source=_HOSTS.replace("argv[1].split()", "[argv[1]]")
        ),
        "a script for the chief alone, with hosts from an argument": ScriptFacts(
            source=_HOSTS.replace('"type": "worker"', '"type": "chief"')
        ),
        "the index comes from an environment variable": _script("int(os.environ['I'])"),
        "two workers on localhost": _script("0", "localhost", "localhost"),
    },
    unstaged="read from the script by its syntax tree: tests/scripts stages it",
)
