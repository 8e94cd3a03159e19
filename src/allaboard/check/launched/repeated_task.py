"""Commands of one TensorFlow 1 job that all are worker 0, because none says which worker it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import Problem, Value
from allaboard.formats.shell.script import Script

_INDEX_FLAGS = frozenset(("task_index", "task_id", "task"))
_HOST_FLAGS = ("ps_hosts", "worker_hosts")
_MAX_COMMANDS = 256
"""Commands of one script that are compared."""


def repeated_tasks(script: Script) -> Iterator[Problem]:
    """Yield a problem for the second command of a job that starts a worker without its number."""
    started_jobs: dict[tuple[str, ...], Value] = {}
    for step in script.flow[:_MAX_COMMANDS]:
        if not step.words and step.changes:
            started_jobs.clear()  # the script may take its number from the environment
        if not step.words or step.loops or not step.is_certain:
            continue
        flags = _flags(step.words)
        job = flags.get("job_name")
        if job is None or job.text != "worker" or _INDEX_FLAGS & flags.keys():
            continue
        if not all(flag in flags for flag in _HOST_FLAGS):
            continue
        program = next((w.text for w in step.words if w.text.endswith(".py")), "")
        key = (program, *(flags[flag].text for flag in _HOST_FLAGS))
        if key in started_jobs:
            earlier_line = started_jobs[key].origin.line
            yield launch_problem(
                job,
                message=f"this is worker 0, as the command of line {earlier_line}: neither has a "
                "--task_index",
                observed="--job_name=worker",
                correction="--job_name=worker --task_index=1",
            )
            return
        started_jobs[key] = job


def _flags(words: Sequence[Value]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for position, word in enumerate(words):
        flag, equals, text = word.text.partition("=")
        if flag.startswith("--"):
            following = words[position + 1] if position + 1 < len(words) else word
            values[flag[2:].replace("-", "_")] = Value(text, word.origin) if equals else following
    return values
