"""`allaboard preflight` on hosts of a test bed, as a launcher would start it on each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from bedded import need
from certificates import authority, signed
from multihost_drills.contract import MEETING_PORT
from multihost_drills.run_host_drill import CLUSTER, described
from testbed import Bed, Process, open_mpi, slurm, ssh
from testbed.firewall import Block
from testbed.requirements import other_python

pytestmark = pytest.mark.zoo
SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "preflight.schema.json"
PREFLIGHT = (sys.executable, "-m", "allaboard", "preflight")


def start(
    bed: Bed,
    *options: str,
    framework: str = "torch",
    without: tuple[int, tuple[str, ...]] = (-1, ()),
    python: tuple[int, str] = (-1, ""),
    other: tuple[int, dict[str, str]] = (-1, {}),
) -> list[Process]:
    """A preflight on every host; each in a folder of its own, where found.json will be. ``without``: a
    host, and options that all others get. ``python``: a host, and the folder whose Python it trains with.
    ``other``: a host, and variables that it is told otherwise."""
    running = []
    for index, host in enumerate(bed.hosts):
        variables = {k: v for k, v in os.environ.items() if not k.startswith(CLUSTER)}
        variables |= described(framework, index, len(bed.hosts)) | {"OMP_NUM_THREADS": "1"}
        variables |= other[1] if index == other[0] else {}
        if index == python[0]:
            variables |= {"PATH": f"{python[1]}{os.pathsep}{variables['PATH']}"}
            variables["VIRTUAL_ENV"] = python[1]
        folder = bed.folder / host
        folder.mkdir()
        words = [*PREFLIGHT, "--run-dir", str(folder / "run"), *options]
        words += () if index == without[0] else without[1]
        running.append(bed.start(host, words, variables, folder=folder))
    return running


def ended(running: list[Process]) -> list[int]:
    return [p.wait(90) for p in running]


def found(bed: Bed) -> dict[str, object]:
    """What the first host found, checked against the published schema."""
    document = json.loads((bed.folder / "h0" / "found.json").read_text())
    jsonschema.validate(document, json.loads(SCHEMA.read_text()))
    return document


def rules(document: dict[str, object]) -> set[str]:
    return {f["rule"] for f in document["findings"]}  # type: ignore[attr-defined]


def links(document: dict[str, object]) -> dict[tuple[str, str], str]:
    return {(k["source"], k["target"]): k["answer"] for k in document["links"]}  # type: ignore[attr-defined]


def test_healthy_hosts_are_a_table_and_a_matrix() -> None:
    need()
    with Bed(4) as bed:
        running = start(bed, "--quick")
        assert ended(running) == [0, 0, 0, 0], "\n".join(p.text() for p in running)
        said = running[0].text()
        assert "4 of 4 here, meeting at h0:29500" in said
        assert said.count("  aboard  ") == 4 and said.count(" MB/s") == 12, said
        assert "ready to start" in said
        assert "h2: ready to start" in running[2].text()


def test_a_dropped_link_is_a_cell_of_the_matrix() -> None:
    need()
    with Bed(4) as bed:
        block = Block(way="both", peer="h1", but=(29500,))
        bed.block("h3", block)
        running = start(bed, "--quick", "--format", "json", "--output", "found.json")
        assert ended(running) == [3, 3, 3, 3], "\n".join(p.text() for p in running)
        told = found(bed)
        wrong = {pair for pair, answer in links(told).items() if answer != "aboard"}
        assert wrong == {("h1", "h3"), ("h3", "h1")}
        assert rules(told) == {"NET006"} and told["outcome"] == "failed"
        others = json.loads((bed.folder / "h2" / "found.rank2.json").read_text())
        assert rules(others) == {"NET006"}


def test_dropped_data_ports_are_found_by_a_real_collective() -> None:
    need()
    with Bed(3) as bed:
        bed.block("h2", Block(way="out", new=True, but=(MEETING_PORT,), after=150))
        running = start(bed, "--bound", "8", "--format", "json", "--output", "found.json")
        assert ended(running) == [3, 3, 3], "\n".join(p.text() for p in running)
        told = found(bed)
        assert set(links(told).values()) == {"aboard"}  # the trials alone see nothing
        assert "NET012" in rules(told) and told["collective"] == ""


def test_a_host_that_never_comes_is_missing_in_the_table() -> None:
    need()
    with Bed(3) as bed:
        running = start(bed, "--quick", "--timeout", "5")
        running.pop(1).kill()
        assert ended(running) == [3, 3]
        said = running[0].text()
        assert "2 of 3 here" in said and "missing" in said and "JOIN001" in said, said


@pytest.mark.long
def test_an_address_that_leads_to_another_host_is_told_to_all() -> None:
    need()
    with Bed(3) as bed:
        running = start(bed, "--quick", "--timeout", "20", other=(2, {"MASTER_ADDR": "h1"}))
        assert ended(running) == [3, 3, 3], "\n".join(p.text() for p in running)
        said = [p.text() for p in running]
        assert all("NET017" in s and "h1, which holds rank 1, not rank 0" in s for s in said), said
        assert "MASTER_ADDR=h1 leads h2 to the wrong host" in said[2], said[2]
        assert "on h2: use h0:29500 instead of h1:29500" in said[2], said[2]
        assert all(s.count("the roll call failed") == 1 for s in said), said


def test_another_python_on_one_host(tmp_path: Path) -> None:
    need()
    other = other_python()
    if other is None:
        pytest.skip("not on this machine: no second Python from 3.9 on")
    (tmp_path / "python").symlink_to(other)
    with Bed(3) as bed:
        running = start(bed, "--quick", "--format", "json", "--output", "found.json",
                        python=(1, str(tmp_path)))  # fmt: skip
        assert ended(running) == [0, 0, 0], "\n".join(p.text() for p in running)
        (told,) = [f for f in found(bed)["findings"] if f["rule"] == "ENV006"]  # type: ignore[attr-defined]
        assert told["summary"].startswith("python differs: h1 (rank 1) has 3."), told
        assert all("python differs: h1" in p.text() for p in running)


def test_over_ssh() -> None:
    need(*ssh.NEEDS)
    with Bed(3) as bed:
        service = ssh.Ssh(bed)
        words = [*PREFLIGHT, "--quick", "--ssh", " ".join(service.command), "--hosts"]
        process = bed.start("h0", [*words, "h0,h1,h2"])
        assert process.wait(120) == 0, process.text()
        assert "3 of 3 here, meeting at h0:29500" in process.text()
        process = bed.start("h0", [*words, "h0,h1,h9", "--timeout", "4"])
        assert process.wait(120) == 3, process.text()
        assert "no login on h9" in process.text() and "JOIN001" in process.text()


@pytest.mark.long
def test_tensorflow_over_ssh_meets_or_says_why_not() -> None:
    need(*ssh.NEEDS)
    with Bed(2) as bed:
        service = ssh.Ssh(bed)
        words = [*PREFLIGHT, "--framework", "tensorflow", "--ssh", " ".join(service.command)]
        words += ["--hosts", "h0,h1", "--timeout", "20"]
        process = bed.start("h0", words)
        assert process.wait(120) == 0, process.text()
        assert "all 2 ready" in process.text() and "2 of 2 here" in process.text()
        bed.block("h1", Block(but=(ssh.PORT,), way="both"))
        process = bed.start("h0", words)
        assert process.wait(120) == 3, process.text()
        assert "NET003" in process.text() and "ready to start" not in process.text()
        assert "ssh -o BatchMode=yes h1 true" in process.text()


def test_two_names_of_one_host_over_ssh() -> None:
    need(*ssh.NEEDS)
    with Bed(2) as bed:
        service = ssh.Ssh(bed)
        words = [*PREFLIGHT, "--quick", "--ssh", " ".join(service.command), "--hosts"]
        process = bed.start("h0", [*words, f"h1,{bed.addresses['h1']}"])
        assert process.wait(120) == 2, process.text()
        assert "are one host" in process.text() and "ready to start" not in process.text()


def test_interrupted_over_ssh_nothing_is_left_behind() -> None:
    need(*ssh.NEEDS)
    with Bed(2) as bed:
        service = ssh.Ssh(bed)
        bed.block("h1", Block(ports=(ssh.PORT,)))
        words = [*PREFLIGHT, "--quick", "--ssh", " ".join(service.command), "--hosts", "h0,h1"]
        process = bed.start("h0", words)
        deadline = time.monotonic() + 30.0
        while "--leashed" not in bed.run("h0", "ps", "-eo", "args") and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(2.0)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130 and "interrupted; ending it on" in process.text()
        deadline = time.monotonic() + 10.0
        while "--leashed" in bed.run("h0", "ps", "-eo", "args") and time.monotonic() < deadline:
            time.sleep(0.2)
        assert "--leashed" not in bed.run("h0", "ps", "-eo", "args")


@pytest.mark.parametrize("framework", ["tensorflow", "jax"])
def test_the_collective_is_the_frameworks_own(framework: str) -> None:
    need()
    with Bed(2) as bed:
        running = start(bed, "--output", "found.txt", framework=framework)
        assert ended(running) == [0, 0], "\n".join(p.text() for p in running)
        said = (bed.folder / "h0" / "found.txt").read_text()
        assert f"{framework}: " in said and "16 MiB" in said and "ready to start" in said


def test_under_slurm_nothing_need_be_said() -> None:
    need(*slurm.NEEDS)
    with Bed(3) as bed:
        service = slurm.Slurm(bed)
        words = ["srun", "-N3", "-n3", "--mpi=none", *PREFLIGHT, "--quick"]
        process = bed.start("h0", words, service.environment)
        assert process.wait(120) == 0, process.text()
        assert "3 of 3 here, meeting at h0:29500" in process.text()
        assert "h2: ready to start" in process.text()


@pytest.mark.long
def test_under_open_mpi() -> None:
    need(*open_mpi.NEEDS)
    with Bed(3) as bed:
        service = open_mpi.OpenMpi(bed)
        words = [*service.command, "-n", "3", *PREFLIGHT, "--quick", "--coordinator", "h0:29500"]
        process = bed.start("h0", words)
        assert process.wait(120) == 0, process.text()
        assert "3 of 3 here" in process.text()


def test_over_tls_and_who_has_no_certificate(tmp_path: Path) -> None:
    need()
    files = signed(tmp_path, "host", authority(tmp_path, "ca"))
    told = ("--tls-cert", str(files.cert), "--tls-key", str(files.key), "--tls-ca", str(files.ca))
    with Bed(3) as bed:
        assert ended(start(bed, "--quick", *told)) == [0, 0, 0]
    with Bed(2) as bed:
        running = start(bed, "--quick", "--timeout", "4", without=(1, told))
        assert ended(running) == [3, 3]
        assert "NET015" in running[1].text(), running[1].text()


def test_under_torchrun_whose_store_has_the_port(tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    words = [*torchrun, "--nproc-per-node", "2", "--no-python", *PREFLIGHT, "--quick"]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    assert "2 of 2 here" in done.stdout and done.stdout.count("ready to start") == 2, done.stdout


@pytest.mark.long
@pytest.mark.timeout(120)
def test_a_host_that_is_cut_off_at_the_collective_ends_it_within_the_bound() -> None:
    need()
    with Bed(2) as bed:
        running = start(bed, "--timeout", "15", "--bound", "10")
        deadline = time.monotonic() + 60.0
        while "all 2 ready" not in running[1].text() and time.monotonic() < deadline:
            time.sleep(0.01)
        cut = time.monotonic()
        bed.unplug("h0")
        assert ended(running) == [3, 3]
        assert time.monotonic() - cut < 25.0
        for one in running:
            assert "EXIT003" not in one.text()
            assert "Timeout (0:" not in one.text(), "nor the stack of allaboard's own script"
