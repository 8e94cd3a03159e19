"""Which tasks of a cluster that somebody else starts are served by allaboard."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path

import pytest

from allaboard.options.ps_task_options import choose_served_task

TF2 = "import tensorflow as tf\ntf.distribute.ParameterServerStrategy(r)\n"
TF1 = "tf.train.replica_device_setter(cluster=c)\n"
OWN = TF1 + "tf.train.Server(c)\n"
MWMS = "tf.distribute.MultiWorkerMirroredStrategy()\n"


@pytest.mark.parametrize(
    ("text", "job", "mode", "expected"),
    [
        (TF2, "ps", "auto", True),
        (TF2, "worker", "auto", True),
        (TF2, "chief", "auto", False),
        (TF1, "ps", "auto", True),
        (TF1, "worker", "auto", False),
        (OWN, "ps", "auto", False),
        (MWMS, "ps", "auto", False),
        (MWMS, "worker", "auto", False),
        (TF2, "ps", "script", False),
    ],
)
def test_who_is_served(tmp_path: Path, text: str, job: str, mode: str, expected: bool) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    cluster = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
    told = {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": job, "index": 0}})}
    given = Namespace(module=None, ps_server=mode)
    assert bool(choose_served_task(told, given, [str(script)])) is expected


@pytest.mark.parametrize("told", [{}, {"TF_CONFIG": "{"}, {"TF_CONFIG": "[]"}, {"TF_CONFIG": "{}"}])
def test_nobody_where_no_task_is_described(tmp_path: Path, told: dict[str, str]) -> None:
    script = tmp_path / "train.py"
    script.write_text(TF2)
    assert not choose_served_task(told, Namespace(module=None, ps_server="auto"), [str(script)])
