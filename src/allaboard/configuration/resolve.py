"""One ClusterSpec from the environment of a process: the resolver that all commands use.

`run`, the agent, `preflight`, the drop-ins and `diagnose PID` call `resolve`; `check` reads files and
plug-ins of other packages as well, with the same readers (`read_sources`) and the same `merge`. So they agree
on who a process is. `resolve` looks at the table of variables first and runs only the readers whose variables
are set. Measured over 1,000 calls on one core with Python 3.11: 3 µs without any, 15 µs in a worker of
torchrun, 28 µs in a task of Slurm, 67 µs with a TF_CONFIG of 16 tasks; the first call loads the readers too.
It loads no plug-ins, and opens no file unless it is given a ``read_file``.

Which statement is in force
---------------------------
A field has the value of the first source that gives one. Sources count by the kind of their statement (the
layer), then in this order, which is that of `SOURCE_VARIABLES`:

| layer | source | read from | why here |
|---|---|---|---|
| call | (scripts only) | arguments of the framework's init | an argument overrules the environment |
| launcher | torchrun | PET_* | defaults of the torchrun that is about to start workers |
| framework | tf_config | TF_CONFIG | TensorFlow reads nothing else, and nothing else sets it |
| processes | jax | JAX_* | only JAX reads these, so a process that has them runs JAX |
| processes | torch_env | RANK, WORLD_SIZE, MASTER_* | torch reads them; many tools set them for others too |
| processes | mpi | OMPI_COMM_WORLD_*, PMI_*, PMIX_RANK | the launcher's; scripts make RANK of them |
| processes | mvapich2 | MV2_COMM_WORLD_* | the same, of another MPI |
| processes | init_url | INIT_METHOD, DIST_URL | a habit of scripts, which no framework reads |
| step | (scripts only) | srun, mpirun | what starts the tasks |
| allocation | torchrun, mpi, mvapich2 | as above | in a worker of torchrun: these started torchrun |
| allocation | pals, flux, lsf, slurm | PALS_*, FLUX_*, JSM_*, SLURM_* | a task may start several ranks |
| allocation | pbs, sagemaker, vertex, skypilot, dstack, kubernetes, ray | their own | these count hosts |

A listed cluster comes before numbers: with TF_CONFIG the rank is the task's place in the cluster, and all
meet at the first task's address. Without one all meet at JAX_COORDINATOR_ADDRESS, else at
MASTER_ADDR:MASTER_PORT. A value that is no number stays in force: the framework would read it and fail, so
the rank is unknown (-1) rather than that of a source further down. A variable that is set but blank counts as
not set.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

from allaboard.configuration.spec.merge import merge_parts
from allaboard.contracts import ConfigurationSource
from allaboard.facts import ClusterSpec, Material, Origin, PartialSpec, Problem
from allaboard.facts.configuration.source_variables import CLUSTER_VARIABLES, SOURCE_VARIABLES

NAMED_FILES = ("PBS_NODEFILE",)
"""Variables that name a file which a source reads, where it is allowed to."""
_MAX_FILE_BYTES = 1_000_000
"""Bytes of such a file that are read: a node file of some ten thousand slots."""
_NAMES = {name: frozenset(v.names) for name, v in SOURCE_VARIABLES.items()}


def resolve(
    environment: Mapping[str, str], read_file: Callable[[str], str] | None = None
) -> ClusterSpec:
    """Return what the environment of a process says of the cluster that it belongs to.

    Never raises on bad values: what cannot be read is among the spec's problems.

    Args:
        environment: variables and their values; those that no source reads are ignored.
        read_file: returns the text of a file that a variable names, and raises OSError if it cannot; None
            leaves such files alone.
    """
    variables = {name: environment[name] for name in CLUSTER_VARIABLES if name in environment}
    if not variables:
        return merge_parts(())
    texts = _texts(variables, read_file) if read_file is not None else None
    material = Material.from_environment(variables, texts)
    present = {
        name: _source(name) for name, names in _NAMES.items() if not names.isdisjoint(variables)
    }
    parts, problems = read_sources(material, present)
    spec = merge_parts(parts)
    if not problems:
        return spec
    return merge_parts([*parts, PartialSpec(source="unreadable", problems=tuple(problems))])


def read_sources(
    material: Material, sources: Mapping[str, ConfigurationSource]
) -> tuple[list[PartialSpec], list[Problem]]:
    """Return what the sources find in one material, and what kept one of them from reading it."""
    parts: list[PartialSpec] = []
    problems: list[Problem] = []
    for name, source in sources.items():
        try:
            parts += source.read(material)
        # A source may be a plug-in: one that fails must not silence the others.
        except Exception as error:
            problems.append(_failed(name, error, material.file))
    return parts, problems


def read_named_file(path: str) -> str:
    """Return the text of a small file of this host, for ``read_file``. Raises OSError if it cannot be
    read."""
    with Path(path).open("rb") as file:
        return file.read(_MAX_FILE_BYTES).decode("utf-8", "replace")


def _texts(variables: Mapping[str, str], read_file: Callable[[str], str]) -> dict[str, str]:
    return dict(_read(variables, read_file))


def _read(
    variables: Mapping[str, str], read_file: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    for name in NAMED_FILES:
        path = variables.get(name, "")
        if path:
            try:
                yield name, read_file(path)
            except (OSError, ValueError):
                continue  # of another host, or of a job that has ended: what else is said counts


@cache
def _source(name: str) -> ConfigurationSource:
    """Return a source of ours; its module is loaded when the first environment asks for it."""
    source = importlib.import_module(f"allaboard.configuration.sources.{name}").SOURCE
    assert isinstance(source, ConfigurationSource)
    return source


def _failed(name: str, error: Exception, file: str) -> Problem:
    return Problem(
        kind="unreadable",
        message=f"was not read in full: the own reader of {name} failed: {type(error).__name__}",
        observed=f"{type(error).__name__}: {error}"[:120],
        correction="report this line with the file; the other sources were read",
        origin=Origin(file=file, variable="" if file else name),
    )
