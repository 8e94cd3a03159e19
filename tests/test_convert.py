"""`spec --as`: from every source to every target, or one sentence that says what to add."""

from __future__ import annotations

from pathlib import Path

import pytest

from allaboard.check.collect import configuration_sources, from_files, resolve_material
from allaboard.check.read_file import Source
from allaboard.check.source_material import Parsed, parse_source
from allaboard.cli.spec import TARGETS, main
from allaboard.configuration.spec import list_tasks
from allaboard.configuration.spec.conversion_choices import complete_for_writer
from allaboard.facts import ClusterSpec, Material, sample_config_facts
from allaboard.options.usage_error import UsageError
from allaboard.rules.cfg013_rank_range import RULE
from environments import read_environment

CORPUS = Path(__file__).parent / "corpus"
SOURCES = configuration_sources()
NAMES = {"tf_config": "x.json", "env": "x.sh", "hostfile": "hostfile", "torchrun": "x.sh"}
GOOD = {
    "accelerate": "two.yaml",
    "deepspeed": "hostfile.sh",
    "dstack": "two_nodes.env",
    "environment": "env_two.env",
    "flux": "four_tasks.env",
    "hostfile": "open_mpi.hostfile",
    "init_url": "ranks.url",
    "jax": "variables.env",
    "kubernetes": "pytorchjob.yaml",
    "lsf": "eight_slots.env",
    "mpi": "open_mpi.env",
    "mpirun": "hosts.sh",
    "mvapich2": "two.env",
    "pals": "eight.env",
    "pbs": "hydra_task.env",
    "ray": "auto.env",
    "sagemaker": "two.env",
    "skypilot": "two_nodes.env",
    "slurm": "step.env",
    "srun": "python_module.sbatch",
    "tf_config": "two_workers.json",
    "tf_flags": "workers_only.sh",
    "torchrun": "c10d.sh",
    "vertex": "pools.env",
}
LISTED = ("dstack", "hostfile", "kubernetes", "lsf", "mpirun", "sagemaker", "skypilot", "slurm",
          "tf_config", "tf_flags", "vertex")  # fmt: skip
"""Sources that name every host themselves; one member's view is enough for the same as env."""


def spec_of(path: Path) -> ClusterSpec:
    if path.suffix == ".env":
        return resolve_material(
            "x", Material.from_environment(read_environment(path)), SOURCES
        ).spec
    return next(c.spec for c in from_files([str(path)]).configs if c.parts)


def converted(spec: ClusterSpec, target: str, *hosts: str) -> ClusterSpec:
    """The spec as it is read from the text that it was written as."""
    write = SOURCES[TARGETS[target]].write
    assert write is not None
    text = write(complete_for_writer(spec, hosts=hosts))
    parsed: Parsed = parse_source(Source(NAMES[target], text))
    assert not parsed.problems, text
    ((_, material),) = parsed.materials
    back = resolve_material("x", material, SOURCES)
    assert not back.problems, text
    return back.spec


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", GOOD)
def test_from_every_source_to_every_target(source: str, target: str) -> None:
    spec = spec_of(CORPUS / source / GOOD[source])
    own = target == "env" and {"rank", "world_size", "master_addr"} <= spec.values.keys()
    hosts = () if source in LISTED or own else ("n0", "n1", "n2", "n3")
    back = converted(spec, target, *hosts)
    assert back.cluster or back.machines or back.values


def test_what_is_missing_is_said_with_what_to_type() -> None:
    spec = spec_of(CORPUS / "torchrun" / "c10d.sh")
    with pytest.raises(ValueError, match="--hosts node0,node1"):
        converted(spec, "tf_config")


def test_the_launchers_own_count_is_in_force() -> None:
    back = converted(spec_of(CORPUS / "slurm" / "torchrun_a_node.env"), "tf_config")
    assert len(list_tasks(back)) == 16
    back = converted(spec_of(CORPUS / "accelerate" / "two.yaml"), "torchrun")
    assert (back.number("nnodes"), back.number("nproc_per_node")) == (2, 8)


def test_one_host_needs_no_list() -> None:
    back = converted(spec_of(CORPUS / "torchrun" / "free_port_one_node.sh"), "tf_config")
    assert len(list_tasks(back)) == 4 and {t.host for t in list_tasks(back)} == {"127.0.0.1"}


def test_the_coordinator_of_jax_is_the_master() -> None:
    spec = spec_of(CORPUS / "jax" / "variables.env")
    back = converted(spec, "env")
    assert f"{back.values['master_addr'].text}:{back.values['master_port'].text}" == (
        spec.values["coordinator"].text
    )


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("jobset_torchrun.yaml", "pytorch-workers-0-0.pytorch:3389"),
        ("mpijob.yaml", "-worker-0."),
        ("trainjob_with_runtime.yaml", "pytorch-simple-node-0-0.pytorch-simple:29500"),
    ],
)
def test_pods_have_the_names_that_their_operators_give_them(name: str, first: str) -> None:
    config = next(c for c in from_files([str(CORPUS / "kubernetes" / name)]).configs if c.parts)
    write = SOURCES["tf_config"].write
    assert write is not None
    assert first in write(complete_for_writer(config.spec, parts=config.parts))


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_no_address_is_not_converted(
    target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = '{"cluster": {"worker": [null, "b:1"]}, "task": {"type": "worker", "index": 0}}'
    monkeypatch.setenv("TF_CONFIG", told)
    with pytest.raises(UsageError, match=r"cluster.worker\[0\] is a null, not an address"):
        main(["--as", target])
    assert not capsys.readouterr().out


def test_the_remedy_for_a_world_of_none_is_a_world() -> None:
    (claim,) = RULE.check(sample_config_facts(rank="-1", world_size="0"))
    assert claim.fix == "export WORLD_SIZE=1"
