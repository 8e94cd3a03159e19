"""How often `check` reports something of good training scripts: the examples of public projects.

``python bench/healthy.py --scripts FOLDER`` judges every script and notebook below a folder, whose first
level is named OWNER+REPOSITORY. Fetch them yourself: none is kept here. Every finding has to be read by a
person; what was read so far is in READ. What is not there counts as a false alarm.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import sheet
from checked_file import finding_rows

SUFFIXES = (".py", ".ipynb")
READ = {
    (
        "bytedance+byteps/example/pytorch/mnist-distributed.py",
        "CODE029",
    ): "true: 10.57.23.164 is in the script",
    (
        "bytedance+byteps/example/pytorch/mnist-distributed.py",
        "CODE005",
    ): "true: the sampler's epoch is never set",
    (
        "determined-ai+determined/examples/tutorials/core_api_pytorch_mnist/model_def_distributed.py",
        "CODE005",
    ): "true: the sampler's epoch is never set",
    (
        "kubeflow+examples/pytorch_mnist/training/ddp/mnist/mnist_DDP.py",
        "CODE005",
    ): "true: the sampler's epoch is never set",
    (
        "kubeflow+examples/tensorflow_cuj/neural_machine_translation/distributed_nmt_with_attention.py",
        "CODE002",
    ): "true: its step is called without strategy.run",
    (
        "pytorch+xla/test/test_train_mp_imagenet.py",
        "CODE005",
    ): "true: the sampler's epoch is never set",
    (
        "pytorch+xla/test/test_train_mp_imagenet_fsdp.py",
        "CODE005",
    ): "true: the sampler's epoch is never set",
    (
        "pytorch+xla/test/test_train_mp_mnist.py",
        "CODE005",
    ): "true: the sampler's epoch is never set",
    (
        "tensorflow+gan/tensorflow_gan/examples/esrgan/colab_notebooks/ESRGAN_TPU.ipynb",
        "CODE006",
    ): "true: the loss is a mean over one replica's batch",
    (
        "IntelAI+models/models/image_recognition/tensorflow/resnet50v1_5/training/cpu/mlperf_resnet/"
        "resnet_run_loop.py",
        "CODE021",
    ): "true: MirroredStrategy takes no num_gpus; that branch cannot run",
    (
        "NVIDIA+DeepLearningExamples/PyTorch/Recommendation/NCF/ncf.py",
        "CODE052",
    ): "true: every rank loads the checkpoint without map_location",
    (
        "NVIDIA+DeepLearningExamples/PyTorch/LanguageModeling/BERT/run_squad.py",
        "CODE005",
    ): "true: the sampler's epoch is never set",
    (
        "aws-samples+awsome-distributed-training/3.test_cases/pytorch/picotron/train.py",
        "CODE011",
    ): "true: rank 0 downloads a model while the others wait three minutes at most",
    (
        "yangkky+distributed_tutorial/src/mnist-distributed.py",
        "CODE005",
    ): "true: the sampler's epoch is never set",
    (
        "yangkky+distributed_tutorial/src/mnist-distributed.py",
        "CODE029",
    ): "true: 10.57.23.164 is in the script",
    (
        "yangkky+distributed_tutorial/src/mnist-mixed.py",
        "CODE005",
    ): "true: the sampler's epoch is never set",
}
"""What a person found when reading: path and rule to why the finding is true of that script."""


def judge(folder: Path) -> dict[str, Any]:
    """Return, by repository, the scripts judged and their findings."""
    repositories: dict[str, Any] = {}
    for path in sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.is_file()):
        name = str(path.relative_to(folder))
        rows = finding_rows(path, name, "script", READ)
        entry = repositories.setdefault(name.partition("/")[0], {"scripts": 0, "findings": []})
        entry["scripts"] += 1
        entry["findings"] += rows
    return repositories


def body(repositories: dict[str, Any]) -> str:
    """The verdict, a table of the repositories, and every finding."""
    findings = [f for entry in repositories.values() for f in entry["findings"]]
    scripts = sum(entry["scripts"] for entry in repositories.values())
    false = [f for f in findings if not f["read"]]
    errors = sum(f["severity"] == "error" for f in false)
    verdict = (
        f"{scripts} scripts of {len(repositories)} repositories: {len(findings)} findings, "
        f"{len(findings) - len(false)} of them true of the script; {len(false)} false alarms, "
        f"{errors} of them errors.\n"
    )
    rows = [
        (
            name.replace("+", "/"),
            entry["scripts"],
            ", ".join(f"{r} {n}" for r, n in sorted(Counter(
                f["rule"] for f in entry["findings"]).items())) or "none",
        )
        for name, entry in sorted(repositories.items())
    ]  # fmt: skip
    table = sheet.table(("repository", "scripts", "findings"), rows)
    each = sheet.table(
        ("script", "line", "rule", "severity", "as read"),
        [
            (f["script"], f["line"], f["rule"], f["severity"], f["read"] or "false alarm")
            for f in findings
        ],
    )
    return f"{verdict}\n{table}\n{each}"


def measure(folder: Path, facts: dict[str, Any], results: Path) -> None:
    """Judge the folder and leave the sheet ``healthy_scripts``."""
    repositories = judge(folder)
    if not repositories:
        raise SystemExit(f"no script in {folder}")
    sheet.save(
        results / "healthy_scripts.json", {"circumstances": facts, "repositories": repositories}
    )
    sheet.page("healthy_scripts", __doc__, facts, body(repositories), results)
