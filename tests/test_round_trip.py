"""spec -> text -> spec, for every source that can be written; and readers on any text at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allaboard.check.collect import Gathered, configuration_sources, resolve_material
from allaboard.check.file_types import kind_of
from allaboard.check.read_file import Source
from allaboard.check.run_rules import judge_configuration
from allaboard.check.source_material import Parsed, parse_source
from allaboard.configuration.spec import list_tasks
from allaboard.facts import ClusterSpec, Machine, Material, Origin, Value

SOURCES = configuration_sources()
LABEL = st.from_regex(r"[a-z][a-z0-9-]{0,8}[a-z0-9]", fullmatch=True)
HOST = st.one_of(
    LABEL,
    st.builds("{}.{}".format, LABEL, LABEL),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda a: f"[{a}]"),
)
PORT = st.integers(1024, 65535)
JOBS = st.sampled_from(["chief", "worker", "ps"])


@st.composite
def clusters(draw: st.DrawFn) -> ClusterSpec:
    """A cluster of distinct addresses, read by one of its tasks."""
    shape = draw(st.dictionaries(JOBS, st.integers(1, 4), min_size=1))
    if shape.get("chief"):
        shape["chief"] = 1
    total = sum(shape.values())
    pairs = draw(st.lists(st.tuples(HOST, PORT), min_size=total, max_size=total, unique=True))
    rest = iter(f"{host}:{port}" for host, port in pairs)
    cluster = {job: tuple(Value(next(rest)) for _ in range(n)) for job, n in shape.items()}
    job = draw(st.sampled_from(sorted(cluster)))
    index = draw(st.integers(0, len(cluster[job]) - 1))
    return ClusterSpec(source="merged", cluster=cluster, job=Value(job), index=Value(str(index)))


@st.composite
def allocations(draw: st.DrawFn) -> ClusterSpec:
    """Hosts with slots, as a hostfile or Slurm gives them."""
    names = draw(
        st.lists(
            st.one_of(LABEL, st.ip_addresses(v=4).map(str)), min_size=1, max_size=6, unique=True
        )
    )
    machines = tuple(Machine(Value(n), draw(st.integers(1, 8))) for n in names)
    port = Value(str(draw(st.integers(1024, 60000))))
    return ClusterSpec(source="merged", machines=machines, values={"master_port": port})


def read_back(text: str, name: str) -> ClusterSpec:
    parsed = parse_source(Source(name, text))
    assert not parsed.problems
    ((subject, material),) = parsed.materials
    return resolve_material(subject, material, SOURCES).spec


def written(source: str, spec: ClusterSpec) -> str:
    write = SOURCES[source].write
    assert write is not None
    return write(spec)


@given(clusters())
def test_tf_config(spec: ClusterSpec) -> None:
    back = read_back(written("tf_config", spec), "x.json")
    listed = {(j, i): v.text for j, i, v in spec.tasks()}
    # Brackets are not kept where they were not needed, which they always are for IPv6.
    assert {(j, i): v.text for j, i, v in back.tasks()} == listed
    assert back.job is not None and back.index is not None and spec.job and spec.index
    assert (back.job.text, back.index.text) == (spec.job.text, spec.index.text)
    assert not back.problems


@given(allocations())
def test_hostfile(spec: ClusterSpec) -> None:
    back = read_back(written("hostfile", spec), "hostfile")
    assert [(m.name.text, m.slots) for m in back.machines] == [
        (m.name.text, m.slots) for m in spec.machines
    ]


@given(allocations())
def test_allocation_to_tf_config_keeps_every_task(spec: ClusterSpec) -> None:
    back = read_back(written("tf_config", spec), "x.json")
    assert [(t.host, t.port) for t in list_tasks(back)] == [
        (t.host, t.port) for t in list_tasks(spec)
    ]


@given(allocations(), st.data())
def test_torch_env(spec: ClusterSpec, data: st.DataObject) -> None:
    known = list_tasks(spec)
    rank = data.draw(st.integers(0, len(known) - 1))
    values = {**spec.values, "rank": Value(str(rank))}
    own = ClusterSpec(source="merged", machines=spec.machines, values=values)
    back = read_back(written("torch_env", own), "x.sh")
    assert back.number("rank") == rank
    assert back.number("world_size") == len(known)
    assert back.number("local_rank") == known[rank].slot
    assert back.values["master_addr"].text == known[0].host
    again = read_back(written("torch_env", back), "x.sh")
    assert {f: v.text for f, v in again.values.items()} == {
        f: v.text for f, v in back.values.items()
    }


@given(allocations())
def test_torchrun(spec: ClusterSpec) -> None:
    commands = [c for c in written("torchrun", spec).splitlines() if not c.startswith("#")]
    assert len(commands) == len(spec.machines)
    for node, (command, machine) in enumerate(zip(commands, spec.machines, strict=True)):
        back = read_back(command + "\n", "x.sh")
        assert back.number("nnodes") == len(spec.machines)
        assert back.number("nproc_per_node") == machine.slots
        assert back.number("node_rank") == node
        assert back.values["master_addr"].text == spec.machines[0].name.text
        again = read_back(written("torchrun", back), "x.sh")
        assert {f: v.text for f, v in again.values.items()} == {
            f: v.text for f, v in back.values.items()
        }


# Pieces of every format, so that random texts get past the first character of each reader.
PIECES = st.sampled_from(
    ['{"cluster":', '{"worker":', '["a:1",', "]", "}", '"task":', '{"type":"worker","index":', "0",
     "apiVersion: v1\n", "kind: Job\n", "spec:\n", "  replicas: 2\n", "  - name: x\n", "&a ", "*a",
     "template:\n", "containers:\n", "env:\n", "value: |\n", "export RANK=", "$(", "${A:-", "'",
     '"',
     "\\\n", "<<EOF\n", "EOF\n", "torchrun --nnodes=", "--rdzv-endpoint=", "#SBATCH --nodes=",
     "2\n",
     "host slots=4\n", "n[1-", "tcp://", "file://", "os.environ['TF_CONFIG'] = ", "import os\n",
     "import torch.distributed as dist\n", "dist.init_process_group(", ")",
     "if rank == 0:\n    ",
     ":", ",", "\n", " ", "\t", "\r\n", "NaN", "-", "é", "\ufeff"]
)  # fmt: skip
ANYTHING = st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join))
NAMES = st.sampled_from(
    ["x.json", "x.yaml", "x.sh", "x.py", "hostfile", "x.url", "x.txt", "x.sbatch", "noext"]
)
NAMED = st.sampled_from(
    ["TF_CONFIG", "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "CLUSTER_SPEC",
     "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS", "SLURM_PROCID",
     "SLURM_JOB_ID", "OMPI_COMM_WORLD_RANK", "PMI_SIZE", "PET_NNODES", "SM_HOSTS",
     "SM_CURRENT_HOST", "RAY_ADDRESS", "JAX_COORDINATOR_ADDRESS", "http_proxy",
     "GLOO_SOCKET_IFNAME", "NCCL_IB_HCA", "CUDA_VISIBLE_DEVICES"]
)  # fmt: skip


def judged(name: str, text: str) -> None:
    parsed: Parsed = parse_source(Source(name, text))
    configs = [resolve_material(s, m, SOURCES) for s, m in parsed.materials]
    manifests = [parsed.manifests] if parsed.manifests is not None else []
    findings = judge_configuration(Gathered(configs, manifests, parsed.python_scripts))
    for finding in findings:
        assert "itself failed" not in finding.summary and "own reader" not in finding.summary
    for config in configs:
        for source in ("tf_config", "torch_env", "hostfile", "torchrun"):
            try:
                written(source, config.spec)
            except ValueError:
                continue


def seen(variables: dict[str, str]) -> None:
    config = resolve_material("environment", Material.from_environment(variables), SOURCES)
    for finding in judge_configuration(Gathered([config])):
        assert "itself failed" not in finding.summary and "own reader" not in finding.summary


@settings(max_examples=150, deadline=None)
@given(NAMES, ANYTHING)
def test_no_text_breaks_a_reader(name: str, text: str) -> None:
    judged(name, text)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(NAMED, st.one_of(ANYTHING, st.integers().map(str)), max_size=8))
def test_no_variable_breaks_a_reader(variables: dict[str, str]) -> None:
    seen(variables)


SEEDS = [
    p
    for p in sorted((Path(__file__).parent / "corpus").glob("*/*"))
    if p.is_file() and p.name != "EXPECTED" and p.suffix != ".bin"
]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_mutated_configurations_for_two_minutes() -> None:
    """Every corpus file cut, doubled, spliced and edited at random, as its own kind."""
    import random
    import time

    seed = int(os.environ.get("FUZZ_SEED", "0")) or random.randrange(2**32)
    chance = random.Random(seed)
    texts = {p: p.read_text(errors="replace") for p in SEEDS}
    end = time.monotonic() + float(os.environ.get("FUZZ_SECONDS", "120"))
    count = 0
    while time.monotonic() < end:
        path = chance.choice(SEEDS)
        text = texts[path]
        for _ in range(chance.randint(1, 4)):
            text = _mutated(text, texts[chance.choice(SEEDS)], chance)
        began = time.monotonic()
        try:
            if path.suffix == ".env":
                pairs = (line.partition("=") for line in text.splitlines())
                seen({n: v for n, _, v in pairs if n and "\0" not in n + v})
            else:
                judged(path.name, text)
        except Exception as error:
            raise AssertionError(f"seed {seed}, after {count}: {path.name} as {text!r}") from error
        assert time.monotonic() - began < 5, f"seed {seed}: slow: {path.name} as {text!r}"
        count += 1
    print(f"{count} inputs, seed {seed}")


def _mutated(text: str, other: str, chance: object) -> str:
    from random import Random

    assert isinstance(chance, Random)
    at = chance.randint(0, len(text))
    to = min(len(text), at + chance.randint(0, 12))
    kind = chance.randrange(6)
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[:at] + text[to:]
    if kind == 2:
        return text[:to] + text[at:]
    if kind == 3:
        cut = chance.randint(0, len(other))
        return text[:at] + other[cut : cut + 40] + text[to:]
    if kind == 4:
        return text[:at] + chance.choice("{}[]\"':,*&!|>-\n\t $()\\#=\0\ufeff–") + text[to:]
    return text[:at] + str(chance.choice([-1, 0, 2**31, 10**30, "NaN", "null"])) + text[to:]


def test_kinds_by_content() -> None:
    assert kind_of("x", '{"a": 1}') == "json"
    assert kind_of("x", "#!/usr/bin/env python\nimport os") == "python"
    assert kind_of("x", "#!/bin/bash\n") == "shell"
    assert kind_of("x", "apiVersion: v1\nkind: Job\n") == "manifest"
    assert kind_of("x", "node1 slots=4\nnode2 slots=4\n") == "hostfile"
    assert kind_of("x", "tcp://a:1\n") == "url"
    assert kind_of("x", "RANK=1\nWORLD_SIZE=2\n") == "shell"
    assert kind_of("x", "Dear all,\nthe train leaves.\n") == ""
    assert json.loads(written("tf_config", ClusterSpec(
        source="m", machines=(Machine(Value("a", Origin())),))))  # fmt: skip
