"""What to do where Open MPI's variable and PyTorch's differ: env:// starts only with its own."""

from __future__ import annotations

import msgspec

from allaboard.facts import Conflict, Origin, Value, sample_config_facts
from allaboard.rules.engine.catalogue import load_catalogue


def test_a_variable_that_torch_needs_is_not_unset() -> None:
    one = Value("1", Origin(variable="OMPI_COMM_WORLD_RANK"))
    other = Value("0", Origin(variable="RANK"))
    facts = sample_config_facts(rank="1")
    spec = msgspec.structs.replace(facts.spec, conflicts=(Conflict("rank", one, other),))
    found = load_catalogue().find_rule("CFG023")
    assert found is not None
    (claim,) = found.rule.check(msgspec.structs.replace(facts, spec=spec))
    assert claim.fix.startswith("export RANK=$OMPI_COMM_WORLD_RANK")
    assert "unset" not in claim.fix
