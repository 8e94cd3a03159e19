"""The manifests of contrib/kubernetes: valid for the operators' schemas, clean, true to the exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from allaboard.facts import Retry
from allaboard.policy.retry.scheduler_exit_codes import SCHEDULER_EXIT_CODES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "contrib" / "kubernetes"
FINAL = [SCHEDULER_EXIT_CODES[Retry.RESOURCES], SCHEDULER_EXIT_CODES[Retry.NEVER]]
AGAIN = [SCHEDULER_EXIT_CODES[Retry.HERE], SCHEDULER_EXIT_CODES[Retry.ELSEWHERE]]
DOCUMENTS = [
    pytest.param(document, id=f"{file.stem}-{document['kind']}")
    for file in sorted(FOLDER.glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text())
]
PLAIN_KINDS = ("Service",)
"""Kinds of Kubernetes itself whose schema is in no CustomResourceDefinition."""


def schema(kind: str) -> dict[str, Any]:
    folder = Path(__file__).parent / "kubernetes_schemas"
    if kind != "Job":
        return dict(json.loads((folder / f"{kind}.json").read_text()))
    jobs = schema("JobSet")["properties"]["spec"]["properties"]["replicatedJobs"]
    return {"properties": {"spec": jobs["items"]["properties"]["template"]["properties"]["spec"]}}


def parts(node: object, key: str) -> Iterator[Any]:
    """Everything below this node that stands under this key."""
    if isinstance(node, dict):
        for name, value in node.items():
            if name == key:
                yield value
            yield from parts(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from parts(value, key)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_manifest_is_valid_for_its_operator(document: dict[str, Any]) -> None:
    if document["kind"] in PLAIN_KINDS:
        return
    validator = jsonschema.Draft202012Validator(schema(document["kind"]))
    assert [e.message for e in validator.iter_errors(document)] == []


@pytest.mark.parametrize("kind", ["JobSet", "Job", "PyTorchJob", "TFJob", "MPIJob", "TrainJob"])
def test_a_schema_refuses_what_the_operator_does_not_know(kind: str) -> None:
    validator = jsonschema.Draft202012Validator(schema(kind))
    assert not validator.is_valid({"kind": kind, "spec": {"replicatedJob": []}})


def test_every_operator_has_a_manifest() -> None:
    kinds = {d.values[0]["kind"] for d in DOCUMENTS}  # type: ignore[index]
    assert kinds >= {"Job", "JobSet", "TrainJob", "PyTorchJob", "TFJob", "MPIJob"}


def test_check_has_nothing_to_say_of_them() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "allaboard", "check", str(FOLDER)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout.startswith("no finding"), done.stdout


@pytest.mark.parametrize("document", DOCUMENTS)
def test_exit_codes_decide_as_they_are_documented(document: dict[str, Any]) -> None:
    for rules in parts(document, "onExitCodes"):
        assert rules["values"] == FINAL and rules["operator"] == "In"
    for policy in parts(document, "restartPolicy"):
        # The training operator: from 128 on a pod is started again, below that the job fails.
        if policy == "ExitCode":
            assert max(FINAL) < 128 <= min(AGAIN)
    for template in [*parts(document, "template"), document]:
        spec = template.get("spec", {})
        if "podFailurePolicy" in spec:
            pod = spec["template"]["spec"]
            assert pod["restartPolicy"] == "Never", "Kubernetes refuses it otherwise"
            names = [c["name"] for c in pod["containers"]]
            rules = list(parts(spec["podFailurePolicy"], "containerName"))
            assert set(rules) <= set(names)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_where_an_init_container_meets_names_resolve_before_pods_are_ready(
    document: dict[str, Any],
) -> None:
    if document["kind"] == "Service":
        assert document["spec"]["publishNotReadyAddresses"] is True
    if any(parts(document, "initContainers")) and document["kind"] != "Job":
        assert list(parts(document, "publishNotReadyAddresses")) == [True]


def test_the_commands_are_allaboards() -> None:
    text = "".join(file.read_text() for file in FOLDER.glob("*.yaml"))
    assert text.count("--exit-codes") == 6
    assert "preflight" in text
