"""Accelerate: ``accelerate launch`` in a command line, and its config file.

Options and keys are those of accelerate/commands/launch.py and commands/config/config_args.py;
``num_processes`` counts all machines, and a machine gets ``num_processes // num_machines`` of them
(utils/launch.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.contracts import ConfigurationSource
from allaboard.facts import Material, Node, Origin, PartialSpec, Problem, Value
from allaboard.formats.cli_flags import read_flags, words_after_each_program

_FIELDS = {
    "num_processes": "world_size",
    "num_machines": "nnodes",
    "machine_rank": "node_rank",
    "main_process_ip": "master_addr",
    "main_process_port": "master_port",
    "rdzv_backend": "rdzv_backend",
}
_BARE = frozenset(
    (
        "multi_gpu", "cpu", "tpu", "use_deepspeed", "use_fsdp", "use_megatron_lm", "module", "m",
        "no_python", "debug", "quiet", "q", "use_xpu", "tpu_cluster", "no_tpu_cluster",
        "enable_cpu_affinity", "same_network", "dynamo_use_dynamic", "help", "h",
    )
)  # fmt: skip
_PROGRAMS = ("accelerate", "accelerate-launch")


def read_material(material: Material) -> Iterator[PartialSpec]:
    """Yield the cluster of an Accelerate config file, and of the first ``accelerate launch``."""
    if material.kind == "accelerate" and material.tree is not None:
        yield _spec(_keys(material.tree, material.file), whole_file=True)
    for arguments in words_after_each_program(
        material.commands, _PROGRAMS, ("accelerate.commands.launch",)
    ):
        if arguments and arguments[0].text in (
            "config",
            "env",
            "test",
            "estimate-memory",
            "tpu-config",
        ):
            continue
        arguments = arguments[1:] if arguments and arguments[0].text == "launch" else arguments
        flags = read_flags(arguments, _BARE)
        # A config file may say all that the command line does not.
        more = flags.is_opaque or "config_file" in flags.values
        yield _spec(flags.values, whole_file=False, more=more)
        return


def _keys(tree: Node, file: str) -> dict[str, Value]:
    deepspeed = tree.node_at("deepspeed_config")
    nodes = {**(deepspeed.items if deepspeed is not None else {}), **tree.items}
    return {
        name: Value(node.text, Origin(key=name, file=file, line=node.line, column=node.column))
        for name, node in nodes.items()
        if node.kind not in ("map", "list", "null")
    }


def _spec(options: Mapping[str, Value], *, whole_file: bool, more: bool = False) -> PartialSpec:
    values = {field: options[name] for name, field in _FIELDS.items() if name in options}
    if "world_size" in values and values["world_size"].text == "-1":
        del values["world_size"]  # the config file leaves it to the command line
    machines = values.get("nnodes")
    if (machines.integer if machines is not None else 1) == 1:
        # One machine: its number and the others' way to it mean nothing.
        values = {f: v for f, v in values.items() if f not in ("node_rank", "master_addr")}
    return PartialSpec(
        source="accelerate",
        layer="launcher" if not whole_file else "framework",
        framework="pytorch",
        values=values,
        problems=tuple(_problems(options, whole_file, more)),
    )


def _problems(options: Mapping[str, Value], whole_file: bool, more: bool) -> Iterator[Problem]:
    machines, total = options.get("num_machines"), options.get("num_processes")
    if not whole_file and not more:
        yield from _cpu_problem(options, total)
    count = machines.integer if machines is not None else None
    if machines is None or count is None or count < 2:
        return
    all_of = total.integer if total is not None else None
    if total is not None and all_of is not None and all_of > 0 and all_of % count:
        message = (
            f"num_processes is {all_of} for {count} machines: it counts all of them, and each gets "
            f"{all_of // count}"
        )
        right = _written("num_processes", str(count * max(1, -(-all_of // count))), whole_file)
        yield _problem(total, "num_processes", message, right)
    yield from _deepspeed_problems(options, machines, whole_file, more)
    if more:
        return
    if "main_process_ip" not in options:
        message = f"{count} machines and no main_process_ip: each looks for the first one at 'None'"
        right = _written("main_process_ip", "FIRST-HOST", whole_file)
        yield _problem(machines, "num_machines", message, right)
    elif "machine_rank" not in options and not whole_file and "rdzv_backend" not in options:
        message = f"{count} machines and no machine_rank: every machine is machine 0"
        right = "--machine_rank=0   # 1 on the next machine, or $SLURM_NODEID"
        yield _problem(machines, "num_machines", message, right)


def _cpu_problem(options: Mapping[str, Value], total: Value | None) -> Iterator[Problem]:
    """Yield a problem if ``--cpu`` is given with several processes: only with MPI's hostfile does accelerate
    start more than one then (launch_command of accelerate/commands/launch.py)."""
    processes = total.integer if total is not None else None
    if total is None or "cpu" not in options or "mpirun_hostfile" in options:
        return
    if processes is not None and processes > 1:
        message = (
            f"--cpu starts one process, not {processes}: num_processes counts only with --multi_gpu, which "
            "works on a CPU too, or with --mpirun_hostfile"
        )
        if "multi_gpu" in options:  # ValueError: "You can only use one of"
            message = "accelerate takes only one of --cpu and --multi_gpu, which works on a CPU too"
        yield _problem(
            total,
            "num_processes",
            message,
            f"--multi_gpu --num_processes={processes}   # without --cpu",
        )


def _deepspeed_problems(
    options: Mapping[str, Value], machines: Value, whole_file: bool, more: bool
) -> Iterator[Problem]:
    """Yield a problem for DeepSpeed's own launcher, which wants one start and a hostfile, although a
    number of the machine shows that each is started by itself.

    accelerate hands over to it unless the launcher is ``standard`` (prepare_deepspeed_cmd_env of
    accelerate/utils/launch.py); without a hostfile it then trains on the local GPUs alone.
    """
    kind, used = options.get("distributed_type"), options.get("use_deepspeed")
    is_deepspeed = (kind is not None and kind.text.upper() == "DEEPSPEED") or used is not None
    launcher, hostfile = (
        options.get("deepspeed_multinode_launcher"),
        options.get("deepspeed_hostfile"),
    )
    is_ours = "machine_rank" in options and (whole_file or not more)
    if not is_deepspeed or not is_ours or hostfile is not None:
        return
    if launcher is not None and launcher.text != "pdsh":
        return
    name = "deepspeed_multinode_launcher"
    message = (
        f"{machines.text} machines, each with a machine_rank, and no deepspeed_hostfile: DeepSpeed's "
        "launcher (pdsh, the default) wants one start and a hostfile, so each machine trains alone"
    )
    right = _written(name, "standard", whole_file) + (
        "   # under deepspeed_config" if whole_file else ""
    )
    yield _problem(launcher or machines, name if launcher else "num_machines", message, right)


def _written(name: str, text: str, whole_file: bool) -> str:
    return f"{name}: {text}" if whole_file else f"--{name}={text}"


def _problem(value: Value, name: str, message: str, right: str) -> Problem:
    observed = f"{value.origin.flag or name} {value.text}".strip()
    return launch_problem(value, message=message, correction=right, observed=observed)


SOURCE = ConfigurationSource(read=read_material)
