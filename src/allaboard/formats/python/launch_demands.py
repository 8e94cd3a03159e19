"""What a training script expects of its launcher: nodes, processes that it spawns, GPUs that it picks."""

from __future__ import annotations

import ast
import re

import msgspec

from allaboard.facts import ScriptFacts, Value
from allaboard.facts.configuration.script import LaunchDemands
from allaboard.formats.python.command_line import option_of, refuses_unknown_options
from allaboard.formats.python.import_names import full_name
from allaboard.formats.python.script_ast import Script
from allaboard.formats.python.text_positions import ScriptPositions

_TRAINER = re.compile(
    r"(?:lightning|pytorch_lightning|lightning_fabric)(?:\.pytorch|\.fabric)?\.(?:Trainer|Fabric)\Z"
)
_TASK_COUNTS = ("SLURM_NTASKS", "SLURM_NPROCS", "SLURM_STEP_NUM_TASKS")
_PROGRAM_STARTERS = ("subprocess.", "os.system", "os.popen", "os.exec", "os.spawn", "submitit.", "ray.",
                     "mpi4py.", "dask", "pexpect.", "fabric.", "paramiko.")  # fmt: skip
_RANK_STARTERS = ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes")
_MAX_CHARS = 2**19
_OTHER_LOCAL_RANK = re.compile(
    r"LOCAL_RANK|HfArgumentParser|deepspeed|local_rank\(\)|device_count\(\)"
)
"""Matches scripts that may learn their local rank otherwise than by a flag."""
_LOCAL_RANK_FLAG = re.compile(r"--local[_-]rank\Z")
_OTHER_RANK = re.compile(
    r"OMPI_|PMI_|PMIX_|mpi4py|SLURM_PROCID|SLURM_TASK|horovod|deepspeed|accelerate|ightning|transformers"
    r"|environ\[['\"]RANK['\"]\]\s*=|environ\.(?:update|setdefault)|putenv|['\"]mpi['\"]|submitit|torchx|idr_torch"
)
"""Matches scripts that may learn their rank otherwise than by the variable RANK."""
_LOCAL_RANKS = ("SLURM_LOCALID", "LOCAL_RANK")
_TAKES_DEVICE = ("torch.cuda.set_device", "torch.device")


def read_launch_demands(source: str, file: str) -> LaunchDemands | None:
    """Return what the script expects; None if it cannot be read as Python."""
    if len(source) > _MAX_CHARS:
        return None
    try:
        script = Script(ScriptFacts(source=source, file=file))
        reader = _Reader(script, ScriptPositions(source, file))
        reader.knows_local_rank = bool(_OTHER_LOCAL_RANK.search(source))
        reader.knows_rank = bool(_OTHER_RANK.search(source))
        return reader.read(file)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Reader:
    """One pass over the script's calls."""

    def __init__(self, script: Script, positions: ScriptPositions) -> None:
        self.script = script
        self.tree = script.tree
        self.positions = positions
        self.names = script.names
        self.conditional = _conditional_nodes(script.tree)
        self.knows_local_rank = False
        """True if the script may learn its local rank otherwise than by a flag."""
        self.knows_rank = False
        """True if the script may learn its rank otherwise than by the variable RANK."""

    def read(self, file: str) -> LaunchDemands:
        demands = LaunchDemands(file=file)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                name = full_name(node.func, self.names)
                demands = self._read_call(demands, name, node)
            elif isinstance(node, ast.Assign) and self._is_world_size(node.targets[0]):
                demands = self._with_world_size(demands, node.value)
        return demands

    def _read_call(self, demands: LaunchDemands, name: str, node: ast.Call) -> LaunchDemands:
        arguments = {k.arg: k.value for k in node.keywords if k.arg}
        if any(k.arg is None for k in node.keywords):
            return demands  # **options: what stands there, only a run could tell
        if name in _RANK_STARTERS and id(node) in self.conditional:
            return demands  # it may rather be what a scheduler's task does not do
        if _TRAINER.match(name) and id(node) not in self.conditional:
            return self._with_trainer(demands, arguments)
        if name in _RANK_STARTERS:
            count = arguments.get("nprocs", node.args[2] if len(node.args) > 2 else None)
            return self._with_spawn(demands, count)
        if name == "torch.distributed.init_process_group":
            backend = arguments.get("backend", node.args[0] if node.args else None)
            if isinstance(backend, ast.Constant) and "nccl" in str(backend.value).lower():
                demands = msgspec.structs.replace(demands, is_nccl=True)
            if id(node) not in self.conditional:
                demands = self._with_rank_option(demands, arguments.get("rank"))
            if id(node) not in self.conditional:
                demands = self._with_rank_variable(demands, node, arguments)
            size = arguments.get("world_size")
            return self._with_world_size(demands, size) if size is not None else demands
        if name == "jax.distributed.initialize" and len(node.args) < 4:
            if "local_device_ids" in arguments or "cluster_detection_method" in arguments:
                return demands
            call = Value("jax.distributed.initialize", self.positions.origin(node))
            return msgspec.structs.replace(demands, jax_initialize=call)
        if name == "torch.cuda.set_device" and node.args and self._is_global_rank(node.args[0]):
            call = Value(f"set_device({ast.unparse(node.args[0])})", self.positions.origin(node))
            return msgspec.structs.replace(demands, global_rank_device=call)
        if name == "torch.cuda.set_device" and node.args and self._is_local_rank(node.args[0]):
            call = Value(f"set_device({ast.unparse(node.args[0])})", self.positions.origin(node))
            return msgspec.structs.replace(demands, local_rank_device=call)
        if name == "deepspeed.initialize" and not {"optimizer"} & arguments.keys():
            config = arguments.get("config", arguments.get("config_params"))
            text = config.value if isinstance(config, ast.Constant) else None
            trains = bool(self.script.method_calls("backward"))
            if not trains or not isinstance(text, str) or len(node.args) > 2 or config is None:
                return demands
            return msgspec.structs.replace(
                demands, engine_config=Value(text, self.positions.origin(node))
            )
        if name == "argparse.ArgumentParser" and refuses_unknown_options(self.script, node):
            parser = Value("ArgumentParser", self.positions.origin(node))
            return msgspec.structs.replace(demands, strict_parser=parser)
        if name.endswith(".add_argument") and node.args and not self.knows_local_rank:
            return self._with_local_rank_flag(demands, node)
        if name.endswith("multiprocessing.Process"):
            return self._with_spawn(demands, self._rank_count(node))
        if name.startswith(_PROGRAM_STARTERS):
            return msgspec.structs.replace(demands, starts_programs=True)
        return demands

    def _with_trainer(
        self, demands: LaunchDemands, arguments: dict[str, ast.expr]
    ) -> LaunchDemands:
        # `gpus` until Lightning 1.9.
        devices = "devices" if "devices" in arguments else "gpus"
        flags = []
        for field, name in (("num_nodes", "num_nodes"), ("devices", devices)):
            node = arguments.get(name)
            value, option = self._number(node, f"Trainer({name}=)"), option_of(self.script, node)
            if value is None and option is not None:
                value = self._number(option.default, f"Trainer({name}=)")
                flags += [(field, option.flags)] if value is not None else []
            if value is not None:
                demands = msgspec.structs.replace(demands, **{field: value})
        return msgspec.structs.replace(demands, option_flags=tuple(flags))

    def _with_spawn(self, demands: LaunchDemands, count: ast.expr | None) -> LaunchDemands:
        if count is None:
            return demands
        flag = "spawn(nprocs=)"
        value = self._number(count, flag) or Value("", self.positions.origin(count, flag=flag))
        resolved = self._resolve(count)
        per_device = (
            isinstance(resolved, ast.Call)
            and full_name(resolved.func, self.names) == "torch.cuda.device_count"
        )
        return msgspec.structs.replace(demands, spawn_count=value, spawns_per_device=per_device)

    def _rank_count(self, process: ast.Call) -> ast.expr | None:
        """Return how many ranks a loop over `range(n)` starts as processes; None if they are no ranks."""
        target = next((k.value for k in process.keywords if k.arg == "target"), None)
        functions = self.script.functions_named(target.id) if isinstance(target, ast.Name) else []
        if not any("init_process_group" in ast.unparse(f) for f in functions):
            return None
        loop = next((a for a in self.script.ancestors(process) if isinstance(a, ast.For)), None)
        numbers = loop.iter if loop is not None else None
        is_range = isinstance(numbers, ast.Call) and ast.unparse(numbers.func) == "range"
        if not isinstance(numbers, ast.Call) or not is_range or len(numbers.args) != 1:
            return None
        return numbers.args[0]

    def _with_rank_option(self, demands: LaunchDemands, rank: ast.expr | None) -> LaunchDemands:
        option = option_of(self.script, rank)
        number = (
            option.default.value if option and isinstance(option.default, ast.Constant) else None
        )
        if option is None or type(number) is not int or number < 0:
            return demands
        taken = Value(option.flags[-1], self.positions.origin(option.call))
        return msgspec.structs.replace(demands, rank_option=taken)

    def _with_rank_variable(
        self, demands: LaunchDemands, node: ast.Call, arguments: dict[str, ast.expr]
    ) -> LaunchDemands:
        method, rank = arguments.get("init_method"), arguments.get("rank")
        if len(node.args) > 1 or self.knows_rank or "store" in arguments:
            return demands
        is_env = method is None or (isinstance(method, ast.Constant) and method.value == "env://")
        by_variable = is_env if rank is None else self._is_global_rank(rank)
        if not by_variable or any("multiprocessing" in name for name, _ in self.script.calls):
            return demands  # the processes that it starts may get the variable from it
        taken = Value("init_process_group", self.positions.origin(node))
        return msgspec.structs.replace(demands, rank_variable=taken)

    def _with_world_size(self, demands: LaunchDemands, node: ast.expr) -> LaunchDemands:
        value = self._resolve(node)
        while isinstance(value, ast.Call) and value.args:
            name = full_name(value.func, self.names)
            if name in ("int", "str"):
                value = self._resolve(value.args[0])
            elif name in ("os.getenv", "os.environ.get"):
                value = value.args[0]
            else:
                return demands
        if isinstance(value, ast.Subscript) and full_name(value.value, self.names) == "os.environ":
            value = value.slice
        if not isinstance(value, ast.Constant) or value.value not in _TASK_COUNTS:
            return demands
        variable = Value(str(value.value), self.positions.origin(node))
        return msgspec.structs.replace(demands, world_size_variable=variable)

    def _with_local_rank_flag(self, demands: LaunchDemands, node: ast.Call) -> LaunchDemands:
        spellings = [str(a.value) for a in node.args if isinstance(a, ast.Constant)]
        flags = sorted(f for f in spellings if _LOCAL_RANK_FLAG.match(f))
        if not flags:
            return demands
        takes = any(
            isinstance(n, ast.Call)
            and full_name(n.func, self.names) in _TAKES_DEVICE
            and "local_rank" in ast.unparse(n)
            for n in ast.walk(self.tree)
        )
        if not takes:
            return demands
        taken = Value(flags[0], self.positions.origin(node))
        return msgspec.structs.replace(demands, local_rank_flag=taken)

    def _is_global_rank(self, node: ast.expr) -> bool:
        """Return True if an expression is the rank among all nodes: $RANK or get_rank(), unchanged."""
        value = self._resolve(node)
        while (
            isinstance(value, ast.Call)
            and full_name(value.func, self.names) == "int"
            and value.args
        ):
            value = self._resolve(value.args[0])
        if isinstance(value, ast.Subscript):
            return (
                full_name(value.value, self.names) == "os.environ"
                and isinstance(value.slice, ast.Constant)
                and value.slice.value == "RANK"
            )
        if not isinstance(value, ast.Call):
            return False
        name = full_name(value.func, self.names)
        variable = value.args[0] if value.args else None
        reads_rank = isinstance(variable, ast.Constant) and variable.value == "RANK"
        return (name == "torch.distributed.get_rank" and not value.args) or (
            name in ("os.getenv", "os.environ.get") and reads_rank
        )

    def _is_local_rank(self, node: ast.expr) -> bool:
        """Return True if an expression is the number on the host, as Slurm or torchrun give it."""
        value = self._resolve(node)
        if (
            isinstance(value, ast.Call)
            and full_name(value.func, self.names) == "int"
            and value.args
        ):
            value = self._resolve(value.args[0])
        variable = value.slice if isinstance(value, ast.Subscript) else None
        if isinstance(value, ast.Call) and value.args:
            variable = value.args[0]
        return isinstance(variable, ast.Constant) and variable.value in _LOCAL_RANKS

    def _is_world_size(self, target: ast.expr) -> bool:
        return (
            isinstance(target, ast.Subscript)
            and full_name(target.value, self.names) == "os.environ"
            and isinstance(target.slice, ast.Constant)
            and target.slice.value == "WORLD_SIZE"
        )

    def _resolve(self, node: ast.expr) -> ast.expr:
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return node
        return self.script.ranks.sole_value(node) or node

    def _number(self, node: ast.expr | None, flag: str) -> Value | None:
        """Return the number that the expression certainly is."""
        resolved = self._resolve(node) if node is not None else None
        if (
            node is None
            or not isinstance(resolved, ast.Constant)
            or type(resolved.value) is not int
        ):
            return None
        return Value(str(resolved.value), self.positions.origin(node, flag=flag))


def _conditional_nodes(tree: ast.Module) -> frozenset[int]:
    """Return the ids of the nodes that run only under a condition; ``if __name__ == "__main__"`` is none."""
    conditional: set[int] = set()
    open_nodes: list[tuple[ast.AST, bool]] = [(tree, False)]
    while open_nodes:
        node, is_conditional = open_nodes.pop()
        if is_conditional:
            conditional.add(id(node))
        branches = isinstance(node, (ast.If, ast.IfExp, ast.ExceptHandler, ast.Match))
        is_guard = isinstance(node, ast.If) and _is_main_guard(node.test)
        inside = is_conditional or (branches and not is_guard)
        open_nodes += [(child, inside) for child in ast.iter_child_nodes(node)]
    return frozenset(conditional)


def _is_main_guard(test: ast.expr) -> bool:
    names = {n.id for n in ast.walk(test) if isinstance(n, ast.Name)}
    return names == {"__name__"}
