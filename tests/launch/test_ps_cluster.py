"""From options to tasks, and which of them allaboard serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.launch.parameter_servers.ps_cluster import (
    InvalidRolesError,
    cluster_tasks,
    missing_servers_note,
    served_tasks,
)
from allaboard.launch.parameter_servers.script_scan import ScriptRoles, read_script_roles

TF1 = ScriptRoles(is_readable=True, serves_itself=True, needs_servers=("replica_device_setter", 7))
TF2 = ScriptRoles(is_readable=True, needs_servers=("ParameterServerStrategy", 9),
              needs_chief=("ParameterServerStrategy", 9))  # fmt: skip
PLAIN = ScriptRoles(is_readable=True)
DDP = ScriptRoles(is_readable=True, collective=("DistributedDataParallel", 30))


def test_those_that_train_come_first_and_the_evaluator_last() -> None:
    assert cluster_tasks("2", "2", 1, 1, TF2, "t.py") == (
        ("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("ps", 1), ("evaluator", 0),
    )  # fmt: skip


def test_without_n_there_is_one_worker() -> None:
    assert cluster_tasks("1", None, 0, 0, TF1, "t.py") == (("worker", 0), ("ps", 0))


@pytest.mark.parametrize(
    ("ps", "n", "chief", "evaluator", "reading", "said"),
    [
        ("0", "2", 0, 0, TF1, "builds on parameter servers (replica_device_setter, line 7)"),
        ("0", "2", 0, 0, PLAIN, "for a job without any: allaboard run -n 2 t.py"),
        (
            "-1",
            "2",
            0,
            0,
            TF1,
            '--ps expects a number of parameter servers from 1 to 4096, got "-1"',
        ),
        (
            "two",
            "2",
            0,
            0,
            TF1,
            '--ps expects a number of parameter servers from 1 to 4096, got "two"',
        ),
        (
            "99999",
            "2",
            0,
            0,
            TF1,
            '--ps expects a number of parameter servers from 1 to 4096, got "99999"',
        ),
        ("1", "0", 0, 0, TF1, '-n expects a number of workers from 1 to 4096, got "0"'),
        ("1", "2", 2, 0, TF2, "--chief given 2 times"),
        ("1", "2", 1, 2, TF2, "--evaluator given 2 times"),
        ("1", "2", 0, 0, TF2, "runs on a chief; try: allaboard run --ps 1 -n 2 --chief t.py"),
        ("1", "2", 0, 0, DDP, "t.py is a collective job (DistributedDataParallel, line 30)"),
    ],
)
def test_what_is_no_cluster_is_refused(
    ps: str, n: str, chief: int, evaluator: int, reading: ScriptRoles, said: str
) -> None:
    with pytest.raises(InvalidRolesError) as refused:
        cluster_tasks(ps, n, chief, evaluator, reading, "t.py")
    assert said in str(refused.value)


def test_a_script_without_a_server_is_served() -> None:
    found = (("chief", 0), ("worker", 0), ("ps", 0))
    assert served_tasks(found, "auto", TF2) == {1, 2}
    assert served_tasks(found, "auto", PLAIN) == {2}
    assert served_tasks(found, "script", TF2) == frozenset()
    assert served_tasks(found, "auto", TF1) == frozenset()
    assert (
        served_tasks(found, "auto", ScriptRoles()) == frozenset()
    )  # a module: nothing is known of it


def test_a_script_is_read_and_not_run(tmp_path: Path) -> None:
    script = tmp_path / "t.py"
    script.write_text(
        "import tensorflow as tf\nraise SystemExit\n"
        "def main():\n    s = tf.distribute.ParameterServerStrategy(r)\n"
    )
    found = read_script_roles(script)
    assert (found.is_readable, found.serves_itself) == (True, False)
    assert found.needs_chief == ("ParameterServerStrategy", 4)


@pytest.mark.parametrize("text", ["def (", "\0", "(" * 5000])
def test_what_is_not_python_is_not_known(tmp_path: Path, text: str) -> None:
    script = tmp_path / "t.py"
    script.write_text(text)
    assert read_script_roles(script) == ScriptRoles()
    assert (
        read_script_roles(None)
        == read_script_roles(tmp_path)
        == read_script_roles(tmp_path / "absent.py")
        == ScriptRoles()
    )


@pytest.mark.parametrize(
    ("name", "serves", "chief"), [("tf1_ps_digits", True, False), ("tf_ps_digits", True, True)]
)
def test_the_examples_are_read_for_what_they_are(name: str, serves: bool, chief: bool) -> None:
    found = read_script_roles(Path(__file__).parents[2] / "examples" / f"{name}.py")
    assert found.is_readable and found.needs_servers and found.serves_itself is serves
    assert bool(found.needs_chief) is chief


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        (TF1, "allaboard run --ps 1 -n 2 t.py"),
        (TF2, "allaboard run --ps 1 -n 2 --chief t.py"),
        (
            ScriptRoles(
                is_readable=True, needs_servers=("ClusterCoordinator", 3), collective=("x", 1)
            ),
            "",
        ),
        (ScriptRoles(is_readable=True), ""),
        (ScriptRoles(), ""),
    ],
    ids=["TF1", "TF2", "it may be either", "no servers", "not read"],
)
def test_workers_alone_for_a_script_that_builds_on_servers(reading: ScriptRoles, said: str) -> None:
    told = missing_servers_note("2", reading, "t.py")
    assert told.endswith(said) if said else told == ""
