"""SageMaker training jobs: SM_HOSTS, SM_CURRENT_HOST and what goes with them.

Names are those of the SageMaker training toolkit's environment variables. The tasks are what
TensorFlow's SageMakerClusterResolver makes of them: one worker a host, sorted, on port 2223.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import FormatError, Machine, Material, Origin, PartialSpec, Problem, Value
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES

_FIELDS = SOURCE_VARIABLES["sagemaker"].fields


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the hosts of the training job, and the number of this one."""
    listed = material.variables.get("SM_HOSTS")
    if listed is None:
        return
    from allaboard.formats.json_nodes import read_json

    try:
        tree = read_json(listed.text)
    except FormatError as error:
        yield _bad(listed, error.reason)
        return
    if tree.kind != "list" or any(n.kind != "string" for n in tree.elements):
        yield _bad(listed, "is no list of host names")
        return
    # Sorted as SageMakerClusterResolver does: a host's number is its place in this order.
    hosts = sorted(
        (Value(n.text, Origin(variable="SM_HOSTS", key=f"[{i}]", file=listed.origin.file))
         for i, n in enumerate(tree.elements)),
        key=lambda v: v.text,
    )  # fmt: skip
    current = material.variables.get("SM_CURRENT_HOST")
    values = pick_fields(material.variables, _FIELDS)
    if values.get("nproc_per_node") and values["nproc_per_node"].text.strip() == "0":
        del values["nproc_per_node"]
    names = [h.text for h in hosts]
    problems: list[Problem] = []
    if current is not None and current.text in names:
        values["node_rank"] = Value(str(names.index(current.text)), current.origin)
    elif current is not None:
        problems.append(
            Problem(
                kind="flags",
                message="SM_CURRENT_HOST is not among SM_HOSTS",
                observed=current.text,
                correction=f"export SM_CURRENT_HOST={names[0] if names else 'algo-1'}",
                origin=current.origin,
            )
        )
    yield PartialSpec(
        source="sagemaker",
        layer="allocation",
        values=values,
        machines=tuple(Machine(h) for h in hosts),
        problems=tuple(problems),
    )


def _bad(listed: Value, message: str) -> PartialSpec:
    problem = Problem(
        kind="flags",
        message=f"SM_HOSTS: {message}",
        observed=listed.text[:60],
        correction="""export SM_HOSTS='["algo-1", "algo-2"]'""",
        origin=listed.origin,
    )
    return PartialSpec(source="sagemaker", layer="allocation", problems=(problem,))


SOURCE = ConfigurationSource(read=read_material)
