"""What a drop-in is given that the framework's own call does not take."""

from __future__ import annotations

import pytest

from allaboard.check.jax_coordinator import check_coordinator_address
from allaboard.check.tensorflow_resolver import ConfigurationError
from allaboard.dropin.arguments import accepts_arguments
from allaboard.probe.adapters.jax import read_declaration


def test_what_it_does_not_take() -> None:
    def initialize(address: str, size: int, *, bind: str = "") -> None: ...

    assert accepts_arguments(initialize, "a:1", 2, bind="b:1")
    assert not accepts_arguments(initialize, "a:1", 2, timeout=3)


@pytest.mark.parametrize(
    ("address", "size", "rank"),
    [("a:1", "2", 0), ("a:1", 2, "0"), (1234, 2, 0), ("a:1", 0, 0), ("a:1", 2, -1)],
)
def test_what_is_no_rank_is_left_to_jax(address: object, size: object, rank: object) -> None:
    assert read_declaration((None, address, size, rank), {}) is None


def test_a_rank_beyond_the_last_is_told_to_all() -> None:
    told = read_declaration((None, "a:1", 2, 2), {})
    assert told is not None and told["rank"] == 2


@pytest.mark.parametrize(
    ("given", "variable", "said"),
    [
        ("node0", "", 'coordinator_address="node0:1234"'),
        ("http://node0:99", "", 'coordinator_address="node0:99"'),
        (None, "node0", "export JAX_COORDINATOR_ADDRESS=node0:1234"),
    ],
)
def test_a_coordinator_where_nobody_can_meet(given: str | None, variable: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        check_coordinator_address(given, variable)
    (found,) = error.value.findings
    assert (found.rule, found.fix) == ("CFG015", said)


@pytest.mark.parametrize("address", ["node0:99", "[fd00::1]:99", "127.0.0.1:99"])
def test_one_where_they_can(address: str) -> None:
    check_coordinator_address(address, "")
    check_coordinator_address(None, address)


def test_where_the_coordinator_listens_is_told_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def bound(rank: int, **more: object) -> object:
        told = read_declaration((None, "a:1", 2, rank), dict(more))
        assert told is not None
        return told["bind"]

    assert bound(0, coordinator_bind_address="a:4") == "a:4"
    assert bound(1, coordinator_bind_address="a:4") == bound(0) == ""
    monkeypatch.setenv("JAX_COORDINATOR_BIND_ADDRESS", "a:5")
    assert bound(0) == "a:5"
