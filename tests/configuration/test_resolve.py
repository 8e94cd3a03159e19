"""One resolver: whatever asks for a process's place in the job gets the same answer."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from allaboard.check.collect import configuration_sources, resolve_material
from allaboard.configuration import resolve
from allaboard.configuration.launcher_context import read_launcher_context
from allaboard.configuration.spec.merge import LAYERS, PRECEDENCE
from allaboard.facts import ClusterSpec, Material, Value
from allaboard.facts.configuration.source_variables import (
    CLUSTER_VARIABLES,
    RANK_VARIABLES,
    SOURCE_VARIABLES,
    variables_of,
)
from allaboard.hosts import rank_processes
from allaboard.preflight.task import UnstatedTaskError, task_of_environment
from allaboard.probe.adapters._torch import accelerate
from allaboard.probe.frameworks import jax as jax_adapter
from allaboard.probe.frameworks import tensorflow as tensorflow_adapter
from allaboard.probe.frameworks import torch as torch_adapter
from environments import read_environment

resolver = sys.modules["allaboard.configuration.resolve"]
"""The module, whose name the package gives to its function."""
CORPUS = Path(__file__).parents[1] / "corpus"
FILES = sorted(CORPUS.rglob("*.env"))
ENVIRONMENTS = {str(f.relative_to(CORPUS)): read_environment(f) for f in FILES}


def checked(variables: Mapping[str, str]) -> ClusterSpec:
    """What `allaboard check` reads, by the full path: all sources, all plug-ins."""
    return resolve_material(
        "environment", Material.from_environment(dict(variables)), configuration_sources()
    ).spec


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_both_entrances_agree_on_the_whole_corpus(name: str) -> None:
    variables = ENVIRONMENTS[name]
    fast, full = resolve(variables), checked(variables)
    assert (fast.rank, fast.world_size) == (full.rank, full.world_size)
    assert fast.meeting_address == full.meeting_address
    assert {f: v.origin for f, v in fast.values.items()} == {
        f: v.origin for f, v in full.values.items()
    }
    assert fast == full
    context = read_launcher_context(variables)
    if context is not None:
        assert (context.rank, context.world_size) == (full.rank, full.world_size)
        if not context.has_launcher_store:
            assert context.address == str(full.meeting_address or "")
    try:
        asked = task_of_environment(variables, is_meeting_optional=True)
    except UnstatedTaskError:
        return
    assert (asked.rank, asked.size) == (full.rank, full.world_size)


def test_there_is_a_corpus() -> None:
    assert len(FILES) > 60
    folders = {f.parent.name for f in FILES}
    read_from_files = {"tf_config", "torchrun", "init_url", "kubernetes", "torch_env"}
    assert set(SOURCE_VARIABLES) - read_from_files <= folders


@pytest.mark.parametrize(
    ("variables", "rank", "size"),
    [
        ({"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"}, 1, 2),
        ({"RANK": " 1", "WORLD_SIZE": "2"}, 1, 2),
        ({"JAX_PROCESS_ID": "1", "RANK": "0", "WORLD_SIZE": "2"}, 1, 2),
        ({"JAX_PROCESS_ID": "1", "JAX_NUM_PROCESSES": "3"}, 1, 3),
        ({"RANK": "1", "WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "0"}, 1, 4),
        ({"RANK": "", "SLURM_PROCID": "3", "SLURM_NTASKS": "4"}, 3, 4),
        ({"RANK": "worker1", "WORLD_SIZE": "4", "SLURM_PROCID": "3"}, -1, 4),
        ({"RANK": "-1", "WORLD_SIZE": "4"}, -1, 4),
    ],
)
def test_where_run_and_check_disagreed(variables: dict[str, str], rank: int, size: int) -> None:
    spec, context = resolve(variables), read_launcher_context(variables)
    assert (spec.rank, spec.world_size) == (rank, size)
    assert spec == checked(variables)
    assert context is not None and (context.rank, context.world_size) == (rank, size)


@pytest.mark.parametrize(
    ("variables", "address"),
    [
        ({"MASTER_ADDR": "h", "MASTER_PORT": " 1 "}, "h:1"),
        ({"MASTER_ADDR": "fe80::1", "MASTER_PORT": "1"}, "[fe80::1]:1"),
        ({"MASTER_ADDR": "h"}, ""),
        ({"MASTER_ADDR": "h", "MASTER_PORT": "70000"}, ""),
        ({"JAX_COORDINATOR_ADDRESS": "h:1", "MASTER_ADDR": "g", "MASTER_PORT": "2"}, "h:1"),
        ({"TF_CONFIG": '{"cluster": {"worker": ["w:1"], "chief": ["grpc://c:1"]}}'}, "c:1"),
        (
            {"PET_MASTER_ADDR": "p", "PET_MASTER_PORT": "1", "MASTER_ADDR": "h",
             "MASTER_PORT": "2", "RANK": "0", "WORLD_SIZE": "2"},
            "h:2",
        ),
    ],
)  # fmt: skip
def test_where_all_meet(variables: dict[str, str], address: str) -> None:
    assert str(resolve(variables).meeting_address or "") == address


def test_a_node_file_is_read_only_if_the_caller_allows_it(tmp_path: Path) -> None:
    file = tmp_path / "nodes"
    file.write_text("a\na\nb\n")
    variables = {"PBS_NODEFILE": str(file), "PBS_NODENUM": "1"}
    assert resolve(variables).machines == ()
    found = resolve(variables, resolver.read_named_file).machines
    assert [(m.name.text, m.slots) for m in found] == [("a", 2), ("b", 1)]
    gone = {**variables, "PBS_NODEFILE": str(tmp_path / "none")}
    assert resolve(gone, resolver.read_named_file).machines == ()


def test_hosts_of_lists() -> None:
    names = {
        folder: [m.name.text for m in resolve(ENVIRONMENTS[f"{folder}/{file}"]).machines]
        for folder, file in (("skypilot", "two_nodes.env"), ("dstack", "two_nodes.env"))
    }
    assert names == {"skypilot": ["10.0.0.1", "10.0.0.2"], "dstack": ["10.128.0.47", "10.128.0.48"]}
    lsf = resolve(ENVIRONMENTS["lsf/hosts_alone.env"]).machines
    assert [(m.name.text, m.slots) for m in lsf] == [("hostA", 2), ("hostB", 2)]


class Recorder(dict[str, Value]):
    """Variables that note which of them are asked for."""

    def __init__(self, known: Mapping[str, Value]) -> None:
        super().__init__(known)
        self.asked: set[str] = set()

    def get(self, key: str, default: object = None) -> Value | None:  # type: ignore[override]
        self.asked.add(key)
        return super().get(key)

    def __contains__(self, key: object) -> bool:
        self.asked.add(str(key))
        return super().__contains__(key)


@pytest.mark.parametrize("name", SOURCE_VARIABLES)
def test_a_source_reads_no_variable_that_the_table_lacks(name: str) -> None:
    declared = set(SOURCE_VARIABLES[name].names)
    for variables in ENVIRONMENTS.values():
        recorder = Recorder(Material.from_environment(dict(variables)).variables)
        list(configuration_sources()[name].read(Material(kind="environment", variables=recorder)))
        assert recorder.asked <= declared


def test_every_source_has_its_place() -> None:
    assert set(configuration_sources()) <= set(PRECEDENCE)
    assert set(SOURCE_VARIABLES) <= set(configuration_sources())


def test_the_table_of_the_documentation_has_the_order_in_force() -> None:
    assert resolver.__doc__ is not None
    rows = re.findall(r"^\| (\w+) \| ([^|]+) \|", resolver.__doc__, re.M)[1:]
    layers = [layer for layer, _ in rows]
    assert layers == sorted(layers, key=LAYERS.index)
    for layer in LAYERS:
        named = [
            name
            for row, names in rows
            if row == layer
            for name in names.strip().split(", ")
            if name in SOURCE_VARIABLES
        ]
        outer = {"torchrun", "mpi", "mvapich2"} if layer == "allocation" else set()
        order = [n for n in named if n not in outer]
        assert order == sorted(order, key=list(SOURCE_VARIABLES).index)
    assert set(SOURCE_VARIABLES) == {
        name for _, names in rows for name in names.strip().split(", ") if name in SOURCE_VARIABLES
    }


def test_the_fast_path_loads_no_plug_ins_and_is_fast() -> None:
    script = (
        "import sys; from allaboard.configuration import resolve; resolve({'RANK': '1', 'WORLD_SIZE': '2'});"
        "print([m for m in ('allaboard.plugins', 'importlib.metadata', 'allaboard.check.collect', 'yaml',"
        " 'allaboard.configuration.sources.srun') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
    variables = ENVIRONMENTS["environment/torchrun_worker.env"]
    began = time.perf_counter()
    for _ in range(1000):
        resolve(variables)
    assert time.perf_counter() - began < 5.0, "a thousandth of this is 5 ms: 15 µs were measured"


@pytest.mark.parametrize("size", [1, 3])
def test_what_the_probe_sets_for_workers_is_read_back(size: int) -> None:
    """The probe keeps a table of its own: it must stand alone, and say the same."""
    ports = list(range(29500, 29500 + size))
    for index in range(size):
        for adapter in (torch_adapter, tensorflow_adapter, jax_adapter):
            spec = resolve(adapter.environment(index, size, ports))
            assert (spec.rank, spec.world_size) == (index, size), adapter.__name__
            assert str(spec.meeting_address) == "127.0.0.1:29500"
    assert set(accelerate.SIZES) <= set(variables_of("world_size"))


def test_the_probe_counts_the_tasks_of_a_cluster_alike() -> None:
    tasks = [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("evaluator", 0)]
    ports = list(range(5))
    ranks = [
        resolve(tensorflow_adapter.environment_of_task(tasks, number, ports)).rank
        for number in range(5)
    ]
    assert ranks == [0, 1, 2, 3, -1]


def test_processes_are_found_by_the_same_variables() -> None:
    assert set(RANK_VARIABLES) <= set(CLUSTER_VARIABLES) <= set(rank_processes.RENDEZVOUS_VARIABLES)
    assert len(CLUSTER_VARIABLES) == len(set(CLUSTER_VARIABLES))
