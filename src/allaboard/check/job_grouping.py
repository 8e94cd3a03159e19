"""Which of several files that are given together belong to one job: only these are compared with each
other.

Files with a cluster belong to one job if they have a task's address in common. Other files do if each says
which member it starts (a rank, a node's rank) of a common script; a file that says no member may belong to
any job.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from allaboard.check.concurrent_members import meeting_place
from allaboard.facts import ClusterSpec, ConfigFacts, Pasted, Value
from allaboard.facts.address import canonical_address

GroupedFile = tuple[ConfigFacts, frozenset[str]]
"""A file, and the scripts that it starts."""
_COMPARED = ("json", "shell")
_LAUNCHES = ("torch.distributed", "accelerate.", "deepspeed.")
"""Prefixes of modules that only start a script."""


def started_scripts(commands: Iterable[Sequence[Value]]) -> frozenset[str]:
    """Return the Python scripts and modules that these commands start."""
    script_names = set()
    for command in commands:
        texts = [w.text for w in command]
        after_m = [b for a, b in itertools.pairwise(texts) if a == "-m"]
        modules = [m for m in after_m if not m.startswith(_LAUNCHES)]
        started = next((t for t in texts if t.endswith(".py")), "")
        script_names |= {*modules[:1], *((started.rpartition("/")[2],) if started else ())}
    return frozenset(script_names)


def group_files(files: Sequence[GroupedFile]) -> list[Pasted]:
    """Return the views of each job of which two or more files were given."""
    clusters = [c for c, _ in files if c.kind in _COMPARED and c.spec.cluster]
    numbered = [g for g in files if g[0].kind in _COMPARED and _member_identity(g[0].spec)]
    parts = [*_linked_groups([(c, _addresses(c.spec)) for c in clusters])]
    for linked in _linked_groups([(c, names or frozenset(("",))) for c, names in numbered]):
        parts += _split_by_place(linked)
    return [
        Pasted(specs=tuple((c.subject, c.spec) for c in part)) for part in parts if len(part) > 1
    ]


def _member_identity(spec: ClusterSpec) -> tuple[str, int] | None:
    """Return which of several members the file speaks to; None if it does not say, or if there is only
    one."""
    for field, size in (("rank", "world_size"), ("node_rank", "nnodes")):
        number = spec.number(field)
        if number is not None and not spec.cluster and spec.number(size) != 1:
            return field, number
    return None


def _addresses(spec: ClusterSpec) -> frozenset[str]:
    return frozenset(canonical_address(value.text) for _, _, value in spec.tasks())


def _linked_groups(views: Sequence[GroupedFile]) -> Iterator[list[ConfigFacts]]:
    """Yield the groups of files that have a name in common, directly or through others of the group; in the
    order given."""
    groups: list[tuple[set[str], list[int]]] = []
    for number, (_, names) in enumerate(views):
        linked_groups = [g for g in groups if g[0] & names]
        groups = [g for g in groups if not g[0] & names]
        groups.append(
            (
                set(names).union(*(g[0] for g in linked_groups)),
                [*(n for g in linked_groups for n in g[1]), number],
            )
        )
    for _, numbers in groups:
        yield [views[n][0] for n in sorted(numbers)]


def _split_by_place(views: list[ConfigFacts]) -> Iterator[list[ConfigFacts]]:
    """Yield one job if every file is a different member; else the jobs of each meeting place.

    If members come in twos at one meeting place, they are of several jobs, which use that address one after
    the other.
    """
    identities = [_member_identity(v.spec) for v in views]
    if len(set(identities)) == len(identities):
        yield views
        return
    places: dict[tuple[str, ...], list[ConfigFacts]] = {}
    for view in views:
        places.setdefault(meeting_place(view.spec), []).append(view)
    for views_there in places.values():
        counts = Counter(_member_identity(v.spec) for v in views_there)
        if len(counts) == 1 or min(counts.values()) == 1:
            yield views_there
