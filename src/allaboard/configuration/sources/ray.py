"""Ray: the address of the cluster that a process belongs to.

``RAY_ADDRESS`` is ``auto``, ``host:6379`` or ``ray://host:10001`` (Ray's pages "Starting Ray" and
"Ray Client"). Ray Train's own workers get torch.distributed's variables, read by torch_env.
"""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.configuration.spec import pick_fields
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, PartialSpec, Problem, address
from allaboard.facts.configuration.source_variables import SOURCE_VARIABLES

_WORDS = ("auto", "local")


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the address of the Ray cluster."""
    values = pick_fields(material.variables, SOURCE_VARIABLES["ray"].fields)
    address_value = values.get("ray_address")
    if address_value is None:
        return
    text = address_value.text.strip()
    problems: tuple[Problem, ...] = ()
    body = text.removeprefix("ray://").removeprefix("http://").removeprefix("https://")
    wrong = None
    if text not in _WORDS:
        port = 10001 if text.startswith("ray://") else 6379
        wrong = address.address_fault(body, port=port, needs_port=not text.startswith("http"))
    if wrong is not None:
        head = "ray://" if text.startswith("ray://") else ""
        problems = (
            Problem(
                kind="flags",
                message=f"RAY_ADDRESS {wrong[0]}",
                observed=text,
                correction=f"export RAY_ADDRESS={head}{wrong[1]}",
                origin=address_value.origin,
            ),
        )
    yield PartialSpec(source="ray", layer="allocation", values=values, problems=problems)


SOURCE = ConfigurationSource(read=read_material)
