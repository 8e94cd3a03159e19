"""Drop-ins that meet in a real etcd: processes of one host, started by nobody of ours."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from allaboard.dropin.roll_call import roll_call
from free_ports import free_port
from multihost_drills.run_host_drill import CLUSTER
from real_etcd import started

JOBS = Path(__file__).parents[1] / "zoo" / "jobs"

CALL = """
import sys, allaboard
try:
    found = allaboard.roll_call(float(sys.argv[1]), coordinator=sys.argv[2])
except allaboard.RollCallError as error:
    print("RollCallError", ",".join(sorted({f.rule for f in error.findings})))
else:
    print("aboard", found.rank, found.size)
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    if shutil.which("etcd") is None:
        pytest.skip("no etcd: apt-get install etcd-server")
    with started(tmp_path_factory.mktemp("etcd")) as found:
        yield found


def called(size: int, timeout: float, coordinator: str = "", variable: str = "") -> list[list[str]]:
    """What each rank says."""
    usual = {k: v for k, v in os.environ.items() if not k.startswith(("ALLABOARD", "MASTER_"))}
    if variable:
        usual["ALLABOARD_COORDINATOR"] = variable
    words = [sys.executable, "-c", CALL, str(timeout), coordinator]
    ranks = [
        subprocess.Popen(
            words,
            env={**usual, "RANK": str(rank), "WORLD_SIZE": str(size)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    told = []
    for one in ranks:
        out, err = one.communicate(timeout=120)
        assert out, err[-3000:]
        told.append(out.split())
    return told


def test_by_the_parameter_and_by_the_variable(port: int) -> None:
    aboard = [["aboard", str(r), "2"] for r in range(2)]
    place = f"etcd://127.0.0.1:{free_port()},127.0.0.1:{port}"
    assert called(2, 40.0, f"{place}/parameter") == aboard
    assert called(2, 40.0, variable=f"{place}/variable") == aboard


@pytest.mark.parametrize(
    "framework",
    ["torch", *(pytest.param(f, marks=pytest.mark.long) for f in ("tensorflow", "jax"))],
)
@pytest.mark.parametrize("all_here", [True, False], ids=["all-here", "one-missing"])
def test_the_frameworks_own_calls(port: int, framework: str, all_here: bool) -> None:
    """One endpoint of three is down, one says nothing."""
    here = {"torch": "sum", "tensorflow": "replicas", "jax": "processes"}[framework]
    with socket.create_server(("127.0.0.1", 0)) as mute:
        place = f"127.0.0.1:{free_port()},127.0.0.1:{mute.getsockname()[1]},127.0.0.1:{port}"
        told = joined(framework, 2 if all_here else 1, f"etcd://{place}/{framework}-{all_here}")
    if all_here:
        assert [words[:2] for words in told] == [[here, "2"]] * 2
    else:
        assert [words[:2] for words in told] == [["RollCallError", "JOIN001"]]


def joined(framework: str, started: int, coordinator: str) -> list[list[str]]:
    """What each of so many of two ranks says that calls the drop-in of its framework."""
    seconds = 60 if started == 2 else 5
    ports = [free_port(), free_port()]
    words = [sys.executable, str(JOBS / f"dropin_{framework}.py")]
    words.append(json.dumps({"timeout": seconds}) if framework == "torch" else str(seconds))
    running = []
    for rank in range(started):
        variables = {k: v for k, v in os.environ.items() if not k.startswith(CLUSTER)}
        variables |= described(framework, rank, ports) | {"ALLABOARD_COORDINATOR": coordinator}
        running.append(
            subprocess.Popen(
                words, env={**variables, "OMP_NUM_THREADS": "1"},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
    told = []
    for one in running:
        out, err = one.communicate(timeout=120)
        assert out, err[-3000:]
        told.append(out.split())
    return told


def described(framework: str, rank: int, ports: list[int]) -> dict[str, str]:
    """Two ranks of one host, in the words of this framework."""
    first = f"127.0.0.1:{ports[0]}"
    if framework == "tensorflow":
        cluster = {"worker": [f"127.0.0.1:{p}" for p in ports]}
        return {
            "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": rank}})
        }
    if framework == "jax":
        names = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
        return dict(zip(names, (first, "2", str(rank)), strict=True))
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(ports[0])}
    return {"RANK": str(rank), "WORLD_SIZE": "2", **where}


def test_an_etcd_that_is_down_is_told_within_the_timeout() -> None:
    assert (
        called(2, 4.0, f"etcd://127.0.0.1:{free_port()}/down") == [["RollCallError", "NET016"]] * 2
    )


def test_what_cannot_be_a_meeting_is_a_value_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=r"coordinator=http://node9: expected HOST:PORT"):
        roll_call(coordinator="http://node9")
    monkeypatch.setenv("ALLABOARD_COORDINATOR", "etcd://node9:port/x")
    with pytest.raises(ValueError, match=r"ALLABOARD_COORDINATOR=.*node9:port is no HOST:PORT"):
        roll_call()
