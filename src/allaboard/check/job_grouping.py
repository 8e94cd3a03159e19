"""Which of several files that are given together are of one job: only these are compared with each other.

Files with a cluster are of one job where they name a task's address in common. Others are where each says
which member it starts (a rank, a node's rank), of a script in common; what says none may be of any job.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from allaboard.check.concurrent_members import place
from allaboard.facts import ClusterSpec, ConfigFacts, Pasted, Value
from allaboard.facts.address import canonical

Given = tuple[ConfigFacts, frozenset[str]]
"""A file, and the scripts that it starts."""
_COMPARED = ("json", "shell")
_LAUNCHES = ("torch.distributed", "accelerate.", "deepspeed.")
"""How modules begin that only start a script."""


def scripts(commands: Iterable[Sequence[Value]]) -> frozenset[str]:
    """The Python scripts and modules that these commands start."""
    found = set()
    for command in commands:
        texts = [w.text for w in command]
        after_m = [b for a, b in itertools.pairwise(texts) if a == "-m"]
        modules = [m for m in after_m if not m.startswith(_LAUNCHES)]
        started = next((t for t in texts if t.endswith(".py")), "")
        found |= {*modules[:1], *((started.rpartition("/")[2],) if started else ())}
    return frozenset(found)


def jobs(given: Sequence[Given]) -> list[Pasted]:
    """The views of each job of which two or more were given."""
    clusters = [c for c, _ in given if c.kind in _COMPARED and c.spec.cluster]
    numbered = [g for g in given if g[0].kind in _COMPARED and _member(g[0].spec)]
    parts = [*_linked([(c, _addresses(c.spec)) for c in clusters])]
    for linked in _linked([(c, names or frozenset(("",))) for c, names in numbered]):
        parts += _by_place(linked)
    return [
        Pasted(specs=tuple((c.subject, c.spec) for c in part)) for part in parts if len(part) > 1
    ]


def _member(spec: ClusterSpec) -> tuple[str, int] | None:
    """Which of several members it speaks to; None where it does not say, or there is but one."""
    for field, size in (("rank", "world_size"), ("node_rank", "nnodes")):
        number = spec.number(field)
        if number is not None and not spec.cluster and spec.number(size) != 1:
            return field, number
    return None


def _addresses(spec: ClusterSpec) -> frozenset[str]:
    return frozenset(canonical(value.text) for _, _, value in spec.tasks())


def _linked(views: Sequence[Given]) -> Iterator[list[ConfigFacts]]:
    """Those that have a name in common, with those that have one in common with these; in their order."""
    groups: list[tuple[set[str], list[int]]] = []
    for number, (_, names) in enumerate(views):
        near = [g for g in groups if g[0] & names]
        groups = [g for g in groups if not g[0] & names]
        groups.append(
            (set(names).union(*(g[0] for g in near)), [*(n for g in near for n in g[1]), number])
        )
    for _, numbers in groups:
        yield [views[n][0] for n in sorted(numbers)]


def _by_place(views: list[ConfigFacts]) -> Iterator[list[ConfigFacts]]:
    """One job where everybody is another member; else the jobs of each meeting place. Where members come
    in twos there, they are of several jobs, which have the place one after the other."""
    who = [_member(v.spec) for v in views]
    if len(set(who)) == len(who):
        yield views
        return
    places: dict[tuple[str, ...], list[ConfigFacts]] = {}
    for view in views:
        places.setdefault(place(view.spec), []).append(view)
    for there in places.values():
        times = Counter(_member(v.spec) for v in there)
        if len(times) == 1 or min(times.values()) == 1:
            yield there
