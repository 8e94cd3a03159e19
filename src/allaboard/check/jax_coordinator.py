"""The coordinator address that JAX is given, judged before any process connects to it."""

from __future__ import annotations

from allaboard.check.collect import Gathered, configuration_sources, resolve_material
from allaboard.check.run_rules import judge_configuration
from allaboard.check.tensorflow_resolver import ConfigurationError
from allaboard.facts import Material, Origin, Value
from allaboard.rules.engine.catalogue import load_rule

CALL, ARGUMENT = "jax.distributed.initialize", "coordinator_address"
VARIABLE = "JAX_COORDINATOR_ADDRESS"
ADDRESS_RULE = "meeting-place"
"""Name of the rule that judges the form of the address where ranks meet."""


def check_coordinator_address(argument: str | None, variable: str) -> None:
    """Raise ConfigurationError if the address is not HOST:PORT.

    With a scheme in it JAX would wait for its whole timeout, and without a port it would speak of a list
    index. ``argument`` is what the call was given, ``variable`` is JAX_COORDINATOR_ADDRESS, which counts if
    there is no argument.
    """
    if argument:
        value = Value(argument, Origin(flag=f"initialize({ARGUMENT}=)"))
        material = Material(kind="python", calls=((CALL, {ARGUMENT: value}),))
    else:
        material = Material.from_environment({VARIABLE: variable})
    findings = judge_configuration(
        Gathered([resolve_material("environment", material, configuration_sources())]),
        select=(load_rule(ADDRESS_RULE).code,),
    )
    if findings:
        raise ConfigurationError(findings)
