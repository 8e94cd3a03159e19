"""A training script as text; rules of the CODE family read its syntax tree."""

from __future__ import annotations

import msgspec

from allaboard.facts.configuration.cluster import Value


class ScriptFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A script that parses."""

    source: str
    """Its text, never run."""
    file: str = "train.py"
    """Its name, as given."""
    is_notebook: bool = False
    """True if it is the code of a notebook's cells: they may run in another order, and by hand."""
    is_piece: bool = False
    """True if it is a piece of a larger script: what it lacks may stand in the rest."""
    imported: tuple[tuple[str, str], ...] = ()
    """Constants that it imports from other files that were given: the name that it uses, and the literal."""
    are_servers_started: bool = False
    """True if whoever runs the script starts the servers of a job with parameter servers, as `allaboard run`
    does: then the script is the coordinator's alone."""
    siblings: tuple[ScriptFacts, ...] = ()
    """Other scripts that the user named beside it and that join a job with a rank of their own."""
    sharding: str = ""
    """What a config file that was given shards the model by: "fsdp", "zero3", "deepspeed" for its other
    stages; "" if none says so."""


class LaunchDemands(msgspec.Struct, frozen=True, kw_only=True):
    """What a script expects of whatever launches it, as far as its text says so."""

    file: str = "train.py"
    """Its name, as given or as found beside the file that starts it."""
    num_nodes: Value | None = None
    """``num_nodes`` of Lightning's Trainer or Fabric."""
    devices: Value | None = None
    """``devices`` of Lightning's Trainer or Fabric, if it is a number."""
    option_flags: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Of the two above, those that are defaults of the script's own command line, with the flags that say
    otherwise."""
    rank_option: Value | None = None
    """The flag from which it takes its rank, if that has a number by default."""
    rank_variable: Value | None = None
    """Its call that joins the job, if that takes the rank from the variable RANK and from nothing else."""
    spawn_count: Value | None = None
    """``nprocs`` of ``torch.multiprocessing.spawn``; its text is "" where only a run could tell."""
    spawns_per_device: bool = False
    """True if it spawns as many processes as the host has GPUs."""
    world_size_variable: Value | None = None
    """Slurm's variable with the number of tasks that it takes for the world size, unchanged."""
    jax_initialize: Value | None = None
    """Its call of ``jax.distributed.initialize``, if that finds out by itself which GPU is this task's."""
    is_nccl: bool = False
    """True if it joins a process group over NCCL."""
    local_rank_flag: Value | None = None
    """The flag from which it takes its GPU, if it looks for its local rank nowhere else."""
    global_rank_device: Value | None = None
    """Its call of ``torch.cuda.set_device`` with the rank among all nodes."""
    local_rank_device: Value | None = None
    """Its call of ``torch.cuda.set_device`` with its number on the host."""
    strict_parser: Value | None = None
    """Its argparse parser, if that ends the program at a ``--local_rank`` that a launcher adds."""
    engine_config: Value | None = None
    """The JSON that it gives to ``deepspeed.initialize``, if that gets no optimizer beside it."""
    starts_programs: bool = False
    """True if it starts other programs, which may be srun or ssh."""
