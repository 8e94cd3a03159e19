"""The values of a job's configuration, one by one, and where each was read.

Nothing here is interpreted beyond its text: a rule that calls a value wrong must be able to show it as it was
written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from allaboard.facts.address import Address, whole_number
from allaboard.facts.configuration.text_positions import Part, compose_parts, position_of
from allaboard.facts.finding import Evidence, Place


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The place where a value was read: an environment variable, a flag, a file, or one inside the other."""

    variable: str = ""
    """The environment variable; "" for none."""
    flag: str = ""
    """The flag, or the argument of a call in Python; "" for none."""
    key: str = ""
    """Path inside a structured value (``cluster.worker[1]``)."""
    file: str = ""
    """The file; "" for none."""
    line: int = 0
    """Line from 1 in ``file``, or within the variable's own text if there is no file; 0 if not known."""
    column: int = 0
    """Column, likewise."""
    parts: tuple[Part, ...] = ()
    """Where the parts of a text stand that is not in the file letter by letter."""

    def within(self, line: int, column: int, *, key: str = "") -> Origin:
        """Return the origin of a place inside of the text that begins here, by its line and column there."""
        position = line, column
        if self.parts:
            position = position_of(self.parts, line, column)
        elif self.line:
            across = self.column + column - 1 if line == 1 else column
            position = self.line + line - 1, across if self.column else 0
        return Origin(
            variable=self.variable, key=key, file=self.file, line=position[0], column=position[1]
        )

    def around(self, inner: Origin) -> Origin:
        """Return the origin in this file of what ``inner`` says to be inside of the text that begins here."""
        outer = self.within(inner.line, inner.column)
        parts: tuple[Part, ...] = ()
        if inner.parts:
            own_parts = self.parts or (Part(1, 1, self.line, self.column, bool(self.column)),)
            parts = compose_parts(own_parts, inner.parts)
        return msgspec.structs.replace(
            outer, variable=inner.variable, flag=inner.flag or self.flag, key=inner.key, parts=parts
        )

    @property
    def editor_place(self) -> Place | None:
        """The position that an editor can jump to; None if the value came from no file."""
        if not self.file:
            return None
        return Place(file=self.file, line=self.line, column=self.column)

    @property
    def name(self) -> str:
        """The writer's name of the value: the variable, the flag, or the key in a file."""
        return self.variable or self.flag or self.key

    def assignment_of(self, text: str) -> str:
        """Return the line or words to paste where this value is to be ``text``."""
        if self.variable:
            return f"export {self.variable}={text}"
        if self.flag.endswith("=)"):  # an argument of a call in Python
            argument = self.flag.partition("(")[2].removesuffix(")")
            return argument + (text if whole_number(text) is not None else json.dumps(text))
        if self.flag:
            return f"{self.flag}={text}" if self.flag.startswith("--") else f"{self.flag} {text}"
        return f"{self.key}: {text}" if self.key else text

    def __str__(self) -> str:
        parts = [self.variable or self.flag, self.key]
        if self.file:
            parts.append(str(self.editor_place))
        elif self.column:
            line = f"line {self.line}, " if self.line > 1 else ""
            parts.append(f"({line}character {self.column})")
        return " ".join(p for p in parts if p) or "configuration"


class Value(msgspec.Struct, frozen=True):
    """One value as it was written, and where."""

    text: str
    """The text."""
    origin: Origin = Origin()
    """Where it was read."""

    @property
    def integer(self) -> int | None:
        """The value as a whole number in decimal; None if it is not one."""
        return whole_number(self.text)

    @property
    def evidence(self) -> Evidence:
        """The value as evidence; a long text is cut to what a terminal line holds."""
        short = self.text if len(self.text) <= 120 else self.text[:117] + "…"
        return Evidence(short, str(self.origin))


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A place where a source could not be read as what it should be."""

    kind: str
    """One of KINDS; it decides which rule speaks of it."""
    message: str
    """What is wrong, as one sentence."""
    observed: str = ""
    """The text at the place."""
    correction: str = ""
    """The text to paste instead."""
    origin: Origin = Origin()
    """The place."""


KINDS = ("unreadable", "unreadable.piece",
         "tf_config.json", "tf_config.shape", "tf_config.index", "hostfile", "slurm",
         "init_url", "manifest.env", "manifest.role", "manifest.twice", "flags", "launch",
         "launch.warning", "torn",
         "late", "in_turn", "one_port", "compose", "misspelt")  # fmt: skip

FIELDS = (
    "rank",
    "world_size",
    "local_rank",
    "local_world_size",
    "node_rank",
    "nnodes",
    "nproc_per_node",
    "master_addr",
    "master_port",
    "coordinator",
    "init_url",
    "backend",
    "rdzv_backend",
    "rdzv_endpoint",
    "rdzv_id",
    "standalone",
    "elastic",
    "tasks_per_node",
    "node_list",
    "array",
    "exclusive",
    "launcher",
)
"""The names under which ``PartialSpec.values`` keeps what is not an address of a task."""


TASK_ORDER = ("chief", "master", "worker", "ps")
"""Order in which ranks count through the jobs of a TensorFlow cluster, as TensorFlow's own collectives and
the probe (``probe/adapters/_tensorflow``) count them."""
AUXILIARY_JOBS = ("evaluator",)
"""Jobs whose tasks take no part in the cluster: TensorFlow counts none of them as a rank."""


class Machine(msgspec.Struct, frozen=True):
    """One host of an allocation."""

    name: Value
    """Its name or address."""
    slots: int = 0
    """How many processes it takes; 0 if that is not said."""


class PartialSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Statement of one source about the cluster."""

    source: str
    """Name of the source."""
    layer: str = "processes"
    """Kind of statement. Sources are compared with others of their layer alone: a Slurm task that starts
    torchrun rightly has another rank than torchrun's workers."""
    framework: str = ""
    """tensorflow, pytorch or jax; "" if the source does not tell."""
    cluster: dict[str, tuple[Value, ...]] = {}
    """A job (TensorFlow's word: worker, ps, chief, evaluator) to the addresses of its tasks in order."""
    job: Value | None = None
    """Job of the task that reads this; None if it is not said."""
    index: Value | None = None
    """Index of that task; None if it is not said."""
    values: dict[str, Value] = {}
    """Other values by the names in FIELDS."""
    machines: tuple[Machine, ...] = ()
    """The hosts of an allocation in order."""
    problems: tuple[Problem, ...] = ()
    """What could not be read."""

    @property
    def size(self) -> int:
        """Number of tasks that ``cluster`` lists."""
        return sum(len(tasks) for tasks in self.cluster.values())

    def tasks(self) -> Iterator[tuple[str, int, Value]]:
        """Yield job, index and address of every listed task."""
        for job, addresses in self.cluster.items():
            for index, address in enumerate(addresses):
                yield job, index, address

    def number(self, field: str) -> int | None:
        """Return the value of a field as an integer; None if it is absent or not one."""
        value = self.values.get(field)
        return value.integer if value else None

    @property
    def ranked_tasks(self) -> list[tuple[str, int, Value]]:
        """Job, index and address of every task of ``cluster`` that has a rank, in the order of ranks."""
        order = {job: number for number, job in enumerate(TASK_ORDER)}
        jobs = sorted(
            (job for job in self.cluster if job not in AUXILIARY_JOBS),
            key=lambda job: order.get(job, len(order)),
        )
        return [(j, i, address) for j in jobs for i, address in enumerate(self.cluster[j])]

    @property
    def rank(self) -> int:
        """Rank of the process that reads this; -1 if it is not said, or the process has none.

        A task of a listed cluster has its place there. An evaluator has no rank.
        """
        if self.cluster and self.job is not None and self.index is not None:
            own_task = self.job.text, self.index.integer
            places = (n for n, (j, i, _) in enumerate(self.ranked_tasks) if (j, i) == own_task)
            return next(places, -1)
        rank = self.number("rank")
        return rank if rank is not None and rank >= 0 else -1

    @property
    def world_size(self) -> int:
        """Number of ranks of the job; 0 if it is not said."""
        return len(self.ranked_tasks) or max(self.number("world_size") or 0, 0)

    @property
    def master(self) -> Address | None:
        """MASTER_ADDR and MASTER_PORT, or what stands for them; None unless both are there."""
        host, port = self.values.get("master_addr"), self.values.get("master_port")
        if host is None or port is None:
            return None
        address = Address(
            host.text, port.text.strip()
        )  # brackets stay: torch takes them for a name
        return address if address.is_complete else None

    @property
    def coordinator(self) -> Address | None:
        """The address of JAX's coordinator; None if it is not said or no ``host:port``."""
        value = self.values.get("coordinator")
        address = Address.parse(value.text) if value is not None else None
        return address if address is not None and address.is_complete else None

    @property
    def meeting_address(self) -> Address | None:
        """The address where all ranks meet; None if it is not said.

        `allaboard.configuration.resolve` explains the order.
        """
        tasks = self.ranked_tasks
        if tasks:
            address = Address.parse(tasks[0][2].text)
            return address if address.is_complete else None
        return self.coordinator or self.master


class Conflict(msgspec.Struct, frozen=True):
    """Two sources that state different things about one field."""

    field: str
    """The field."""
    used: Value
    """The value that is in force."""
    overruled: Value
    """The other value."""


class ClusterSpec(PartialSpec, frozen=True, kw_only=True):
    """The merged statement of all sources."""

    conflicts: tuple[Conflict, ...] = ()
    """Where they disagree."""
    sources: tuple[str, ...] = ()
    """The sources that stated anything."""


class Pasted(msgspec.Struct, frozen=True, kw_only=True):
    """Several specs given together, each one member's view."""

    specs: tuple[tuple[str, ClusterSpec], ...]
    """Name of the file, and its spec."""
