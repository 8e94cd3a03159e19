"""What to write instead of a collective under a condition on the rank, however the lines are broken."""

from __future__ import annotations

import pytest

from allaboard.facts import ScriptFacts
from allaboard.rules.engine.catalogue import load_catalogue

HEAD = "import torch.distributed as dist\n"


@pytest.mark.parametrize(
    ("code", "fix", "lines"),
    [
        ("if rank == 0: dist.barrier()\n", "dist.barrier()   # outside of the if of line 2", 1),
        (
            "if rank == 0:\n    save(); dist.barrier()\n",
            "dist.barrier()   # outside of the if of line 2",
            2,
        ),
        (
            "if rank == 0:\n    dist.broadcast(x, 0)\n",
            "dist.broadcast(x, 0)   # outside of the if of line 2",
            2,
        ),
        (
            "if rank == 0:\n    done = dist.all_reduce(x)\n",
            "done = dist.all_reduce(x)   # outside of the if of line 2",
            2,
        ),
    ],
)
def test_the_advice_is_its_statement_alone(code: str, fix: str, lines: int) -> None:
    found = load_catalogue().find_rule("CODE010")
    assert found is not None
    (claim,) = found.rule.check(ScriptFacts(source=HEAD + code))
    assert claim.fix == fix
    assert len(claim.evidence) == lines
