"""The coordinator address that JAX is handed, judged before anybody goes there."""

from __future__ import annotations

from allaboard.check.collect import Gathered, config_of, resolvers
from allaboard.check.environment import environment
from allaboard.check.run_rules import judge
from allaboard.check.tensorflow_resolver import ConfigurationError
from allaboard.facts import Material, Origin, Value

CALL, ARGUMENT = "jax.distributed.initialize", "coordinator_address"
VARIABLE = "JAX_COORDINATOR_ADDRESS"
FORM = ("CFG015",)


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
    found = judge(Gathered([config_of("environment", material, resolvers())]), select=FORM)
    if found:
        raise ConfigurationError(found)
