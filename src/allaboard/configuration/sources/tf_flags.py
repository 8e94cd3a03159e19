"""A cluster in a script's own flags, as the distributed scripts of TensorFlow 1 take it.

``--ps_hosts=a:2222 --worker_hosts=b:2222,c:2222 --job_name=worker --task_index=0``: the flags of the page
"Distributed TensorFlow" (between-graph replication), which many scripts have kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from allaboard.contracts import ConfigurationSource
from allaboard.facts import OPAQUE, Material, Origin, PartialSpec, Value

_HOSTS = {"ps_hosts": "ps", "worker_hosts": "worker", "chief_hosts": "chief"}
_JOB = "job_name"
_INDEX = ("task_index", "task_id")


def read_material(material: Material) -> Iterator[PartialSpec]:
    for command in material.commands:
        flags = _flags(command)
        cluster = {job: _addresses(flags[f]) for f, job in _HOSTS.items() if f in flags}
        if "worker" not in cluster or not all(cluster.values()):
            continue
        job = flags.get(_JOB)
        index = next((flags[f] for f in _INDEX if f in flags), None)
        both = job is not None and index is not None
        yield PartialSpec(
            source="tf_flags",
            layer="framework",
            framework="tensorflow",
            cluster=cluster,
            job=job if both else None,
            index=index if both else None,
        )
        return


def _flags(command: Sequence[Value]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    wanted = {*_HOSTS, _JOB, *_INDEX}
    for at, word in enumerate(command):
        flag, equals, text = word.text.partition("=")
        name = flag.lstrip("-").replace("-", "_")
        if not flag.startswith("-") or name not in wanted:
            continue
        if not equals:
            text = command[at + 1].text if at + 1 < len(command) else ""
        if text and OPAQUE not in text:
            place = word.origin
            origin = Origin(flag=flag, file=place.file, line=place.line, column=place.column)
            found[name] = Value(text, origin)
    return found


def _addresses(listed: Value) -> tuple[Value, ...]:
    return tuple(Value(a.strip(), listed.origin) for a in listed.text.split(",") if a.strip())


SOURCE = ConfigurationSource(read=read_material)
