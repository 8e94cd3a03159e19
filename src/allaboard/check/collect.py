"""Everything that `check` judges, as facts: one ConfigFacts per subject, and facts that span several
subjects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from allaboard.check.contrib_learn import read_as_contrib_learn
from allaboard.check.sharding_configs import with_sharding
from allaboard.check.sibling_scripts import with_siblings
from allaboard.configuration import read_sources, sources
from allaboard.configuration.spec import count_hosts, merge_parts
from allaboard.contracts import ConfigurationSource
from allaboard.facts import ConfigFacts, FilePlace, ManifestFacts, Material, ScriptFacts
from allaboard.facts.configuration.cluster import ClusterSpec, Pasted, Problem
from allaboard.late_pattern import compile_late
from allaboard.plugins import Broken, Plugin, plugins

if TYPE_CHECKING:
    from allaboard.check.source_material import Parsed
    from allaboard.formats.shell.script import Process, Script


_STARTS_SEVERAL = compile_late(
    r"#(?:SBATCH|PBS|BSUB)\b|\b(?:srun|sbatch|torchrun|pdsh|clush|mpirun|mpiexec|parallel-ssh|pssh|deepspeed|accelerate|horovodrun|prterun)\b"
    r"|torch\.distributed\.(?:run|launch)\b|\b(?:docker|podman) run\b"
)
"""What a script has in it that starts other files on several hosts or as several tasks."""


class Gathered(msgspec.Struct):
    """The facts of one `check`."""

    configs: list[ConfigFacts] = []
    """The configuration of each subject: the environment, a file, or a role of a manifest."""
    manifests: list[ManifestFacts] = []
    """Documents that are applied together: those of all files that the user named, or of one folder."""
    python_scripts: list[ScriptFacts] = []
    """Scripts that the CODE rules read."""
    job_views: list[Pasted] = []
    """The members' views of one job, which are compared with each other."""
    skipped: dict[str, str] = {}
    """Files of a folder that could not be judged, and why."""

    def all_facts(self) -> Iterator[object]:
        """Yield each of them, for the rules that read its type."""
        yield from self.configs
        yield from self.manifests
        yield from self.python_scripts
        yield from self.job_views

    @property
    def is_empty(self) -> bool:
        """True if there was nothing to judge."""
        silent = all(not c.parts and not c.problems for c in self.configs)
        return silent and not self.python_scripts and not self.manifests


def configuration_sources() -> dict[str, ConfigurationSource]:
    """Every source by its name, those left out that `broken_sources` gives."""
    return {
        plugin.stem: plugin.value
        for plugin in _loaded()
        if not isinstance(plugin, Broken) and isinstance(plugin.value, ConfigurationSource)
    }


def broken_sources() -> list[Broken]:
    """The sources that could not be loaded, and why."""
    return [plugin for plugin in _loaded() if isinstance(plugin, Broken)]


@cache
def _loaded() -> tuple[Plugin | Broken, ...]:
    return tuple(plugins(sources, "SOURCE", ConfigurationSource))


def from_environment(variables: Mapping[str, str]) -> Gathered:
    """Return the facts of the environment of this process, on this host."""
    from allaboard.check.local_host import read_local_host

    config = resolve_material(
        "environment", Material.from_environment(variables), configuration_sources()
    )
    # What its interfaces have is told where an address means this host alone, to each of several.
    host = read_local_host(addresses=count_hosts(config.spec) > 1)
    return Gathered([msgspec.structs.replace(config, host=host, place=_rendezvous_file(config))])


def from_files(
    paths: Sequence[str], for_every_task: bool = False, walked: Collection[str] = ()
) -> Gathered:
    """Return the facts of the files, in the order given.

    With ``for_every_task`` a spec speaks to all of its tasks. Of ``walked`` files, which the user did not
    name, those that cannot be read are skipped.

    Raises:
        OSError: a file that was named does not exist or may not be read.
    """
    from allaboard.check.concurrent_members import group_members
    from allaboard.check.given_modules import GivenModules
    from allaboard.check.read_file import read_source
    from allaboard.check.source_material import may_be_for_training, parse_source, unjudged_reason
    from allaboard.formats.manifests.kubernetes import merge_manifests

    known_sources = configuration_sources()
    modules = GivenModules(paths) if len(paths) > 1 else None
    gathered = Gathered()
    manifests: dict[str, list[ManifestFacts]] = {}
    concurrent: list[list[ConfigFacts]] = []
    materials: dict[str, Material] = {}
    for path in paths:
        try:
            source = read_source(path)
        except OSError as error:
            if path not in walked:
                raise
            gathered.skipped[path] = (error.strerror or str(error)).lower()
            continue
        if path in walked and not may_be_for_training(source):
            continue
        parsed = parse_source(source, modules)
        if path in walked and (reason := unjudged_reason(source, parsed)):
            gathered.skipped[path] = reason
            continue
        nodes = _start_problems(path, parsed, known_sources)
        parsed.problems += _launch_problems(path, parsed, paths)
        gathered.job_views += nodes
        materials |= parsed.materials
        configs = map(_with_rendezvous_file, _configs(path, parsed, known_sources))
        gathered.configs += [msgspec.structs.replace(c, one_host=bool(nodes)) for c in configs]
        gathered.python_scripts += parsed.python_scripts
        if parsed.members:
            concurrent.append([resolve_material(s, m, known_sources) for s, m in parsed.members])
        if parsed.manifests is not None:
            folder = path.rpartition("/")[0] if path in walked else ""
            manifests.setdefault(folder, []).append(parsed.manifests)
    gathered.configs = _count_own_scripts(gathered.configs)
    if gathered.python_scripts and len(paths) > 1:
        gathered.configs = read_as_contrib_learn(
            gathered.configs, gathered.python_scripts, materials, walked
        )
        gathered.python_scripts = with_siblings(gathered.python_scripts, walked)
        if not walked:  # a folder may hold configs of several jobs
            gathered.python_scripts = with_sharding(gathered.python_scripts, materials.values())
    gathered.manifests = [merge_manifests(documents) for documents in manifests.values()]
    if for_every_task:
        gathered.configs = [_for_every_task(c) if c.spec.cluster else c for c in gathered.configs]
    elif len(paths) - len(walked) > 1:
        from allaboard.check.job_grouping import group_files as of_one_job
        from allaboard.check.job_grouping import started_scripts

        # Files that lie in one folder may be of several jobs; those that the user named are of one.
        named = [c for c in gathered.configs if c.subject not in walked]
        views = [
            (c, started_scripts(materials[c.subject].commands if c.subject in materials else ()))
            for c in named
        ]
        gathered.job_views += of_one_job(views)
    for members in concurrent:
        gathered.configs += members
        gathered.job_views += group_members(members)
    return gathered


def _start_problems(
    path: str, parsed: Parsed, known_sources: Mapping[str, ConfigurationSource]
) -> list[Pasted]:
    """Return the nodes that a shell script starts at one time.

    Members that the script starts one after the other, or on one port, although they must not be, are added
    to the file's problems; so are those of shell scripts inside the file.
    """
    scripts = [
        *((parsed.shell_script,) if parsed.shell_script is not None else ()),
        *parsed.inner_scripts,
    ]
    if not scripts:
        return []
    from allaboard.check.concurrent_members import process_material
    from allaboard.check.concurrent_torchruns import local_jobs, port_conflicts
    from allaboard.check.per_host_commands import repeated_numbers
    from allaboard.check.sequential_start import sequential_starts

    def view(process: Process) -> ConfigFacts:
        return resolve_material(path, process_material(process, path), known_sources)

    for script in () if parsed.is_transcript else scripts:
        parsed.problems += [
            *sequential_starts(script, parsed.text, path, view),
            *port_conflicts(script, view),
        ]
    if parsed.shell_script is None:
        parsed.problems += _step_problems(path, parsed.inner_scripts, known_sources)
    if parsed.shell_script is None:
        return []
    parsed.problems += repeated_numbers(parsed.shell_script, path, view)
    return list(local_jobs(parsed.shell_script, path, view))


def _launch_problems(path: str, parsed: Parsed, paths: Sequence[str]) -> Iterator[Problem]:
    """Yield what contradicts each other in a batch script and the files that its commands name."""
    if parsed.shell_script is None:
        return
    if "job_name" in parsed.text:
        from allaboard.check.launched.repeated_task import repeated_tasks

        yield from repeated_tasks(parsed.shell_script)
    if not _STARTS_SEVERAL.search(parsed.text):
        return
    from allaboard.check.launched.command_and_hostfile import hostfile_problems
    from allaboard.check.launched.deepspeed_batch import batch_problems
    from allaboard.check.launched.docker_names import docker_problems
    from allaboard.check.launched.named_files import LaunchedFiles
    from allaboard.check.launched.script_and_step import launch_problems
    from allaboard.check.launched.script_without_rank import without_rank_by_mpirun
    from allaboard.check.launched.steps_in_turn import steps_in_turn
    from allaboard.check.launched.visible_devices import visible_device_problems
    from allaboard.check.launched.wrapped_commands import wrapped_problems

    yield from visible_device_problems(parsed.shell_script)
    for _, material in parsed.materials:
        if material.kind == "shell":
            files = LaunchedFiles(path, paths)
            yield from launch_problems(material, files)
            yield from wrapped_problems(material, files)
            yield from steps_in_turn(parsed.shell_script, files)
            yield from hostfile_problems(material, files)
            yield from batch_problems(material, files)
            yield from without_rank_by_mpirun(material, files)
            yield from docker_problems(material)


def _step_problems(
    path: str, scripts: Sequence[Script], known_sources: Mapping[str, ConfigurationSource]
) -> Iterator[Problem]:
    """Yield the problems of mpirun and srun commands in shell scripts inside a YAML file."""
    from allaboard.formats.shell.script import with_inner_commands

    steps = {name: known_sources[name] for name in ("mpirun", "srun") if name in known_sources}
    for script in scripts:
        commands = tuple(with_inner_commands(script.commands, path))
        material = Material(kind="shell", file=path, commands=commands)
        yield from (
            p for p in resolve_material(path, material, steps).problems if p.kind == "launch"
        )


def _configs(
    path: str, parsed: Parsed, known_sources: Mapping[str, ConfigurationSource]
) -> Iterator[ConfigFacts]:
    for subject, material in parsed.materials:
        yield resolve_material(subject, material, known_sources)
    if parsed.problems:
        spec = merge_parts([])
        yield ConfigFacts(subject=path, kind="file", spec=spec, problems=tuple(parsed.problems))


def resolve_material(
    subject: str, material: Material, known_sources: Mapping[str, ConfigurationSource]
) -> ConfigFacts:
    """Return what all sources find in one material, merged."""
    parts, problems = read_sources(material, known_sources)
    spec = merge_parts(parts)
    workloads = material.manifests.workloads if material.manifests is not None else ()
    return ConfigFacts(
        subject=subject,
        kind=material.kind,
        spec=spec,
        parts=tuple(parts),
        problems=tuple(problems) + spec.problems,
        variables=dict(material.variables),
        opaque=material.opaque,
        workload=next((w.kind for w in workloads), ""),
    )


def _count_own_scripts(configs: Sequence[ConfigFacts]) -> list[ConfigFacts]:
    """Return the subjects, each Python script that sets one member's task with the number of those of its
    cluster."""
    clusters = {
        c.subject: _members_addresses(c.spec)
        for c in configs
        if c.kind == "python" and (c.spec.index is not None or c.spec.number("rank") is not None)
    }
    clusters = {subject: addresses for subject, addresses in clusters.items() if addresses}
    counts = Counter(clusters.values())
    return [
        msgspec.structs.replace(c, own_scripts=counts[clusters[c.subject]])
        if c.subject in clusters
        else c
        for c in configs
    ]


def _members_addresses(spec: ClusterSpec) -> frozenset[str]:
    """Return the addresses of all members, or the one where they meet."""
    fields = ("master_addr", "master_port", "coordinator", "world_size")
    if spec.cluster:
        return frozenset(v.text for _, _, v in spec.tasks())
    return frozenset(f"{f}={spec.values[f].text}" for f in fields if f in spec.values)


def _for_every_task(config: ConfigFacts) -> ConfigFacts:
    """Return the subject as a statement to all of its tasks: which of them reads it is left open."""
    spec = msgspec.structs.replace(config.spec, job=None, index=None)
    problems = tuple(p for p in config.problems if "no task" not in p.message)
    return msgspec.structs.replace(config, spec=spec, problems=problems, every=True)


def _with_rendezvous_file(config: ConfigFacts) -> ConfigFacts:
    """Return the subject with the file of its file:// rendezvous if that exists on this host. Its absence
    says nothing, since the configuration may be meant for other hosts."""
    file_place = _rendezvous_file(config)
    if file_place is None or file_place.size <= 0:
        return config
    return msgspec.structs.replace(config, place=file_place)


def _rendezvous_file(config: ConfigFacts) -> FilePlace | None:
    url = config.spec.values.get("init_url")
    if url is None or not url.text.startswith("file:///"):
        return None
    from allaboard.check.local_host import read_file_place

    return read_file_place(url.text.removeprefix("file://").partition("?")[0])
