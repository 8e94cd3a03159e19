"""What a script pays for `import allaboard`, and what it is told without any framework."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import allaboard
from allaboard.dropin.error import RollCallError
from allaboard.dropin.servers import await_servers
from free_ports import free_port

HEAVY = {
    "msgspec",
    "asyncio",
    "argparse",
    "rich",
    "yaml",
    "subprocess",
    "json",
    "importlib.metadata",
}


def test_the_import_alone_loads_nothing() -> None:
    script = (
        "import sys; before = set(sys.modules); import allaboard; print(*set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(allaboard.__file__).parents[1])},
    )
    loaded = set(done.stdout.split())
    assert not loaded & HEAVY
    assert {m for m in loaded if m.startswith("allaboard")} == {"allaboard"}


def test_what_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'init_process_grup'"):
        _ = allaboard.init_process_grup  # type: ignore[attr-defined]


def test_nobody_to_meet_is_a_value_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "TF_CONFIG", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="nothing here says which task"):
        allaboard.roll_call()


def test_a_server_that_is_not_there_is_named() -> None:
    address = f"127.0.0.1:{free_port()}"
    with pytest.raises(RollCallError, match="ps 0 does not answer") as error:
        await_servers({"ps": [address], "chief": ["127.0.0.1:1"]}, 0.2)
    (finding,) = error.value.findings
    assert finding.rule == "PS003" and finding.who[0].job == "ps"


class SimpleClusterResolver:
    """What TensorFlow's resolver says, without TensorFlow."""

    task_type, task_id = "worker", 1

    def cluster_spec(self) -> SimpleClusterResolver:
        return self

    def as_dict(self) -> dict[str, list[str]]:
        return {"worker": ["h0:1", "h1:1"]}


class TFConfigClusterResolver(SimpleClusterResolver):
    """The one that reads TF_CONFIG."""


def test_where_the_cluster_was_told_is_named_rightly(monkeypatch: pytest.MonkeyPatch) -> None:
    from allaboard.tensorflow import cluster_of_task

    def origin(resolver: SimpleClusterResolver, given: bool) -> str:
        found = cluster_of_task(resolver, given)
        assert found is not None and found["rank"] == 1
        return str(found["origin"])

    monkeypatch.setenv("TF_CONFIG", "{}")
    assert origin(SimpleClusterResolver(), given=True) == "cluster_resolver argument"
    assert origin(SimpleClusterResolver(), given=False) == "TF_CONFIG"
    assert origin(TFConfigClusterResolver(), given=True) == "TF_CONFIG"
    monkeypatch.delenv("TF_CONFIG")
    assert origin(SimpleClusterResolver(), given=False) == "environment"
