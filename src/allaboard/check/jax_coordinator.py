"""The coordinator address that JAX is handed, judged before anybody goes there."""

from __future__ import annotations

from allaboard.check.collect import Gathered, config_of, configuration_sources
from allaboard.check.environment import environment
from allaboard.check.run_rules import judge
from allaboard.check.tensorflow_resolver import ConfigurationError
from allaboard.facts import Material, Origin, Value
from allaboard.rules.engine.catalogue import load_rule

CALL, ARGUMENT = "jax.distributed.initialize", "coordinator_address"
VARIABLE = "JAX_COORDINATOR_ADDRESS"
ADDRESS_RULE = "meeting-place"
"""Name of the rule that judges the form of the address where ranks meet."""


def checked(given: str | None, variable: str) -> None:
    """``given`` is the argument, ``variable`` what JAX_COORDINATOR_ADDRESS says where there is none.

    Raises ConfigurationError where it is no HOST:PORT: JAX would wait for its whole timeout where there is
    a scheme in it, and where there is no port speak of a list index.
    """
    if given:
        told = Value(given, Origin(flag=f"initialize({ARGUMENT}=)"))
        material = Material(kind="python", calls=((CALL, {ARGUMENT: told}),))
    else:
        material = environment({VARIABLE: variable})
    found = judge(
        Gathered([config_of("environment", material, configuration_sources())]),
        select=(load_rule(ADDRESS_RULE).code,),
    )
    if found:
        raise ConfigurationError(found)
