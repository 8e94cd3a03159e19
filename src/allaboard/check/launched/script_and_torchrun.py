"""A torchrun command, and the Lightning script that it starts, which expects another world size."""

from __future__ import annotations

from collections.abc import Iterator

from allaboard.check.launched.named_files import LaunchedFiles
from allaboard.facts import Material, Problem
from allaboard.formats.cli_flags import read_flags, words_after_program

_MODULES = ("torch.distributed.run", "torch.distributed.launch")
_VALUELESS = frozenset(("standalone", "module", "m", "no_python", "run_path", "use_env"))


def torchrun_problems(material: Material, files: LaunchedFiles) -> Iterator[Problem]:
    """Yield a problem for each torchrun whose world size is not nodes times devices of the Trainer.

    Lightning refuses that (TorchElasticEnvironment.validate_settings).
    """
    for command in material.commands:
        arguments = words_after_program(command, ("torchrun",), _MODULES)
        if arguments is None:
            continue
        flags = read_flags(arguments, _VALUELESS)
        nodes, each = flags.values.get("nnodes"), flags.values.get("nproc_per_node")
        node_count = 1 if nodes is None else nodes.integer
        each_count = each.integer if each is not None else None
        if flags.is_opaque or node_count is None or each is None or each_count is None:
            continue
        demands = files.demands_of(flags.program_words)
        if demands is None or demands.devices is None or demands.devices.integer in (None, -1):
            continue
        wanted_nodes = demands.num_nodes.integer if demands.num_nodes is not None else 1
        wanted = (demands.devices.integer or 0) * (wanted_nodes or 1)
        if wanted == node_count * each_count:
            continue
        name = demands.file.rpartition("/")[2]
        yield Problem(
            kind="launch",
            message=f"Trainer(devices={demands.devices.text}, num_nodes={wanted_nodes}) in {name} wants "
            f"{wanted} ranks, and torchrun starts {node_count * each_count}",
            observed=f"{each.origin.flag} {each.text}, devices={demands.devices.text} "
            f"[{demands.devices.origin}]",
            correction=f"Trainer(devices={each.text}, num_nodes={node_count})",
            origin=each.origin,
        )
