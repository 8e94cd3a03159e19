"""How often `check` reports something of good configurations: the examples of public projects.

``python bench/healthy.py --configurations FOLDER`` judges the batch scripts, launch scripts, manifests,
Compose files, accelerate configs and hostfiles below a folder, whose first level is named OWNER+REPOSITORY.
Fetch them yourself: none is kept here. Each is judged alone, as a person would name it. Every finding has to
be read by a person; what was read so far is in READ. What is not there counts as a false alarm.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import sheet
from checked_file import finding_rows

MAX_NBYTES = 200_000
"""Larger files are no configuration of an example."""
KINDS = (
    ("batch script", r"", r"^#(?:SBATCH|PBS|BSUB)\s"),
    ("operator's job", r"\.ya?ml\Z", r"^kind:\s*(?:TFJob|PyTorchJob|MPIJob|XGBoostJob|PaddleJob|TrainJob)\b"),
    ("group of pods", r"\.ya?ml\Z", r"^kind:\s*(?:JobSet|LeaderWorkerSet)\b"),
    (
        "pods",
        r"\.ya?ml\Z",
        r"\A(?=[\s\S]*^kind:\s*(?:Job|StatefulSet|Pod|Deployment)\b)"
        r"[\s\S]*(?:torchrun|torch\.distributed|mpirun|MASTER_ADDR|TF_CONFIG|deepspeed)",
    ),
    ("accelerate config", r"\.ya?ml\Z", r"^(?:distributed_type|num_machines):"),
    ("Compose file", r"\.ya?ml\Z", r"\A(?=[\s\S]*^services:)[\s\S]*(?:MASTER_ADDR|TF_CONFIG|torchrun)"),
    (
        "launch script",
        r"\.sh\Z",
        r"\b(?:torchrun|torch\.distributed\.(?:run|launch)|accelerate launch|deepspeed|mpirun|srun)\b",
    ),
    ("hostfile", r"hostfile[^/]*\Z", r""),
)  # fmt: skip
"""Kinds of configuration: what the name of a file and its text have in common; the first that fits counts."""
HAS_RENDERING = re.compile(r"\{\{")
"""A Helm or Jinja template is no YAML before it is rendered; check says so, and how to render it."""
_ACCELERATE = "huggingface+accelerate"
_DEEPSPEED = "microsoft+DeepSpeedExamples"
_OSCAR = (
    "bigscience-workshop+bigscience/data/oscar-multilingual/oscar-jsonl-to-meg-mt5-multinode.slurm"
)
_TOPOLOGY = (
    "aws-samples+awsome-distributed-training/micro-benchmarks/nccl-tests/slurm/"
    "topology-aware-nccl-tests"
)
_MEGATRON = "olcf+ai-training-series/ai_at_scale_part_2/megatron_examples/Megatron-DeepSpeed-ORNL"
_BERT = "NVIDIA+DeepLearningExamples/PyTorch/LanguageModeling/BERT"
_NO_HOSTFILE = "true: several nodes, and no hostfile but the default"
_TORN = "true: a line of the command has no backslash at its end"
READ = {
    (f"{_ACCELERATE}/examples/config_yaml_templates/multi_node.yaml", "CFG015"): "true: a placeholder",
    (f"{_ACCELERATE}/tests/test_configs/0_28_0_mpi.yaml", "CFG007"): "true: four machines, all at 127.0.0.1",
    (f"{_ACCELERATE}/tests/test_configs/0_30_0_sagemaker.yaml", "CFG039"): "true: debug stands there twice",
    (_OSCAR, "CFG042"): "true: of eight nodes, seven are never started",
    (_OSCAR, "CFG024"): "true: eight nodes, and no address to meet at",
    (f"{_BERT}/distillation/run_e2e_distillation.sh", "CFG044"): _TORN,
    (f"{_TOPOLOGY}/nccl-tests-ami.sbatch", "CFG045"): "true: an #SBATCH line below the first command",
    (f"{_DEEPSPEED}/training/gan/gan_deepspeed_run.sh", "CFG001"): "true: Windows line ends",
    (f"{_DEEPSPEED}/training/BingBertGlue/run_glue_bert_base_finetune.sh", "CFG042"): _NO_HOSTFILE,
    (f"{_DEEPSPEED}/training/BingBertGlue/run_glue_bert_large_finetune.sh", "CFG042"): _NO_HOSTFILE,
    (f"{_MEGATRON}/examples_deepspeed/curriculum_learning/ds_pretrain_gpt2.sh", "CFG042"): _NO_HOSTFILE,
    **{
        (f"{_DEEPSPEED}/compression/{name}.sh", "CFG024"): "true: the port is above 65535"
        for name in (
            "bert/bash_script/XTC/layer_reduction", "bert/bash_script/XTC/layer_reduction_1bit",
            "bert/bash_script/XTC/quant_1bit", "bert/bash_script/ZeroQuant/zero_quant",
            "bert/bash_script/layer_reduction", "bert/bash_script/pruning_head",
            "bert/bash_script/pruning_row", "bert/bash_script/pruning_sparse",
            "bert/bash_script/quant_activation", "bert/bash_script/quant_weight", "cifar/run_compress",
        )
    },
    **{
        (f"{_DEEPSPEED}/training/autotuning/hf/{name}/test_tune.sh", "CFG044"): _TORN
        for name in ("deberta", "distilbert", "gpt2", "gpt2-large", "gpt2-medium", "gpt2-xl")
    },
}  # fmt: skip
"""What a person found when reading: path and rule to why the finding is true of that file."""


def kind_of(path: Path) -> str:
    """Return the kind of configuration; "" for other files, and for templates that are no YAML yet."""
    if path.stat().st_size > MAX_NBYTES or path.suffix in (".md", ".py", ".rst", ".txt"):
        return ""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""
    for kind, name, content in KINDS:
        if re.search(name, path.name) and re.search(content, text, re.M):
            is_unrendered = path.suffix in (".yaml", ".yml") and HAS_RENDERING.search(text)
            return "" if is_unrendered else kind
    return ""


def judge(folder: Path) -> dict[str, Any]:
    """Return, by kind, the files judged and their findings."""
    kinds: dict[str, Any] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        kind = kind_of(path)
        if not kind:
            continue
        name = str(path.relative_to(folder))
        begin = time.perf_counter()
        rows = finding_rows(path, name, "file", READ)
        entry = kinds.setdefault(
            kind, {"files": 0, "repositories": [], "seconds": 0.0, "findings": []}
        )
        entry["files"] += 1
        entry["seconds"] += time.perf_counter() - begin
        entry["repositories"] = sorted({*entry["repositories"], name.partition("/")[0]})
        entry["findings"] += rows
    return kinds


def body(kinds: dict[str, Any]) -> str:
    """The verdict, a table of the kinds, and every finding."""
    findings = [f for entry in kinds.values() for f in entry["findings"]]
    files = sum(entry["files"] for entry in kinds.values())
    repositories = {r for entry in kinds.values() for r in entry["repositories"]}
    false = [f for f in findings if not f["read"]]
    errors = sum(f["severity"] == "error" for f in false)
    verdict = (
        f"{files} configurations of {len(repositories)} repositories: {len(findings)} findings, "
        f"{len(findings) - len(false)} of them true of the file; {len(false)} false alarms, {errors} of them "
        "errors.\n"
    )
    rows = [
        (
            kind,
            entry["files"],
            len(entry["repositories"]),
            ", ".join(f"{r} {n}" for r, n in sorted(Counter(
                f["rule"] for f in entry["findings"]).items())) or "none",
            entry["seconds"] / entry["files"],
        )
        for kind, entry in sorted(kinds.items())
    ]  # fmt: skip
    table = sheet.table(("kind", "files", "repositories", "findings", "mean (s)"), rows)
    each = sheet.table(
        ("file", "line", "rule", "severity", "as read"),
        [
            (f["file"], f["line"], f["rule"], f["severity"], f["read"] or "false alarm")
            for f in findings
        ],
    )
    return f"{verdict}\n{table}\n{each}"


def measure(folder: Path, facts: dict[str, Any], results: Path) -> None:
    """Judge the folder and leave the sheet ``healthy_configurations``."""
    kinds = judge(folder)
    if not kinds:
        raise SystemExit(f"no configuration in {folder}")
    sheet.save(results / "healthy_configurations.json", {"circumstances": facts, "kinds": kinds})
    sheet.page("healthy_configurations", __doc__, facts, body(kinds), results)
