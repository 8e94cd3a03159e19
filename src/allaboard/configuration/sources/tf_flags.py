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
    """Yield the cluster in the flags of the first command that lists its workers."""
    for command in material.commands:
        flags = _flags(command)
        cluster = {job: _addresses(flags[f]) for f, job in _HOSTS.items() if f in flags}
        if "worker" not in cluster or not all(cluster.values()):
            continue
        job = flags.get(_JOB)
        index = next((flags[f] for f in _INDEX if f in flags), None)
        names_task = job is not None and index is not None
        yield PartialSpec(
            source="tf_flags",
            layer="framework",
            framework="tensorflow",
            cluster=cluster,
            job=job if names_task else None,
            index=index if names_task else None,
        )
        return


def _flags(command: Sequence[Value]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    known_flags = {*_HOSTS, _JOB, *_INDEX}
    for position, argument in enumerate(command):
        flag, equals, text = argument.text.partition("=")
        name = flag.lstrip("-").replace("-", "_")
        if not flag.startswith("-") or name not in known_flags:
            continue
        if not equals:
            text = command[position + 1].text if position + 1 < len(command) else ""
        if text and OPAQUE not in text:
            origin_of_flag = argument.origin
            origin = Origin(
                flag=flag,
                file=origin_of_flag.file,
                line=origin_of_flag.line,
                column=origin_of_flag.column,
            )
            values[name] = Value(text, origin)
    return values


def _addresses(listed: Value) -> tuple[Value, ...]:
    return tuple(Value(a.strip(), listed.origin) for a in listed.text.split(",") if a.strip())


SOURCE = ConfigurationSource(read=read_material)
