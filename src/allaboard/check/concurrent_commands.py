"""The processes that one shell script starts at the same time on its host, and those that it starts one
after the other.

A step that may wait (a function, a loop with a condition, `wait` itself) separates what is before it from
what is after it: nothing is said across one.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.formats.shell.script import Process, Script, Step

_PASSING = frozenset(
    (
        "echo", "printf", "sleep", "mkdir", "cd", "pwd", "true", ":", "date", "nvidia-smi", "hostname",
        "disown", "ulimit", "trap", "touch", "rm", "cp", "tee", "cat",
    )
)  # fmt: skip
"""Programs that neither wait for a process nor change a variable."""


def uninterrupted_stretches(script: Script) -> Iterator[list[Step]]:
    """Yield stretches of steps that certainly run one after another, with nothing between them that may
    wait."""
    steady = _steady_loops(script.flow)
    stretch: list[Step] = []
    for step in script.flow:
        if not step.processes and (not step.program or step.program in _PASSING):
            continue
        if step.processes and step.is_certain and all(loop in steady for loop in step.loops):
            stretch.append(step)
            continue
        yield stretch
        stretch = []
    yield stretch


def concurrent_processes(script: Script) -> Iterator[list[Process]]:
    """Yield two or more processes that run at the same time: all in the background except the last."""
    for stretch in uninterrupted_stretches(script):
        concurrent: list[Process] = []
        for process in (p for step in stretch for p in step.processes):
            concurrent.append(process)
            if not process.is_background:
                yield from [concurrent] if len(concurrent) > 1 else []
                concurrent = []
        yield from [concurrent] if len(concurrent) > 1 else []


def counting_loops(flow: list[Step]) -> set[int]:
    """Return the loops that change a variable after they start something, and so start something else in
    the next round: what that is, only a run could tell."""
    uses: dict[int, set[str]] = {}
    later: dict[int, set[str]] = {}
    for step in flow:
        for loop in step.loops:
            if step.processes or loop not in later:
                uses.setdefault(loop, set()).update(step.uses)
            if step.processes:
                later.setdefault(loop, set())
            elif loop in later:
                later[loop] |= step.changes
    return {loop for loop, names in later.items() if names & uses[loop]}


def _steady_loops(flow: list[Step]) -> set[int]:
    """Return the loops whose rounds are alike except for their own variable, and in which nothing waits."""
    loops = {loop for step in flow for loop in step.loops}
    waits = {
        loop
        for step in flow
        for loop in step.loops
        if not (step.is_certain if step.processes else not step.program or step.program in _PASSING)
    }
    return loops - waits - counting_loops(flow)
