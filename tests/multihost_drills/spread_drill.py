"""The drills of one host, with a host for each rank."""

from __future__ import annotations

from typing import Literal

from allaboard.contracts import Drill
from multihost_drills.contract import HostDrill


def spread(name: str, drill: Drill, within: float) -> HostDrill:
    """The fault that a drill stages on one host, inside its script, with a host for each rank: told on all of
    them. Raises ValueError for one whose fault is done to a process from outside."""
    if not drill.inside or drill.outside is not None:
        raise ValueError(f"{name}: its fault is not in the script")
    framework: Literal["torch", "tensorflow", "jax"]
    match drill.script.partition("_")[0]:
        case "tf":
            framework = "tensorflow"
        case "jax":
            framework = "jax"
        case _:
            framework = "torch"
    return HostDrill(
        title=drill.title,
        framework=framework,
        expects=drill.expects,
        hosts=drill.workers,
        blames=drill.blames or (drill.guilty,),
        scripts=dict.fromkeys(range(drill.workers), drill.script),
        arguments=("--fault", drill.fault or name, "--guilty", str(drill.guilty), *drill.arguments),
        options=drill.options,
        exit_codes=(*drill.exit_codes, 0, 1, 3, 143),  # each host ends as its own worker does
        ends=drill.ends,
        within=within,
        allowed=drill.allowed,
    )
