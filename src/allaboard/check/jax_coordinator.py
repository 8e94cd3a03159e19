"""The coordinator address that JAX is handed, judged before anybody goes there."""

from __future__ import annotations

from allaboard.check.collect import Gathered, configuration_sources, resolve_material
from allaboard.check.environment import environment_material
from allaboard.check.run_rules import judge_configuration
from allaboard.check.tensorflow_resolver import ConfigurationError
from allaboard.facts import Material, Origin, Value
from allaboard.rules.engine.catalogue import load_rule

CALL, ARGUMENT = "jax.distributed.initialize", "coordinator_address"
VARIABLE = "JAX_COORDINATOR_ADDRESS"
ADDRESS_RULE = "meeting-place"
"""Name of the rule that judges the form of the address where ranks meet."""


def check_coordinator_address(argument: str | None, variable: str) -> None:
    """``given`` is the argument, ``variable`` what JAX_COORDINATOR_ADDRESS says where there is none.

    Raises ConfigurationError where it is no HOST:PORT: JAX would wait for its whole timeout where there is
    a scheme in it, and where there is no port speak of a list index.
    """
    if argument:
        value = Value(argument, Origin(flag=f"initialize({ARGUMENT}=)"))
        material = Material(kind="python", calls=((CALL, {ARGUMENT: value}),))
    else:
        material = environment_material({VARIABLE: variable})
    findings = judge_configuration(
        Gathered([resolve_material("environment", material, configuration_sources())]),
        select=(load_rule(ADDRESS_RULE).code,),
    )
    if findings:
        raise ConfigurationError(findings)
