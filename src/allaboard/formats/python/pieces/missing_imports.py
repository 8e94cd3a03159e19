"""The imports that a piece of a script leaves out, by the names that everybody gives to what they import."""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass

_USUAL_IMPORTS = {
    "torch": "import torch",
    "nn": "import torch.nn as nn",
    "dist": "import torch.distributed as dist",
    "mp": "import torch.multiprocessing as mp",
    "DDP": "from torch.nn.parallel import DistributedDataParallel as DDP",
    "DistributedDataParallel": "from torch.nn.parallel import DistributedDataParallel",
    "FSDP": "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP",
    "FullyShardedDataParallel": "from torch.distributed.fsdp import FullyShardedDataParallel",
    "DataLoader": "from torch.utils.data import DataLoader",
    "DistributedSampler": "from torch.utils.data import DistributedSampler",
    "init_process_group": "from torch.distributed import init_process_group",
    "xm": "import torch_xla.core.xla_model as xm",
    "tf": "import tensorflow as tf",
    "jax": "import jax",
    "multihost_utils": "from jax.experimental import multihost_utils",
    "pl": "import pytorch_lightning as pl",
    "rank_zero_only": "from pytorch_lightning.utilities import rank_zero_only",
    "Accelerator": "from accelerate import Accelerator",
    "PartialState": "from accelerate import PartialState",
    "accelerator": "from accelerate import Accelerator\naccelerator = Accelerator()",
    "gather_object": "from accelerate.utils import gather_object",
    "deepspeed": "import deepspeed",
    "os": "import os",
    "sys": "import sys",
    "json": "import json",
    "socket": "import socket",
    "time": "import time",
    "argparse": "import argparse",
    "np": "import numpy as np",
}
_HOROVOD = {
    "callbacks": "import horovod.tensorflow.keras as hvd",
    "broadcast_global_variables": "import horovod.tensorflow as hvd",
    "BroadcastGlobalVariablesHook": "import horovod.tensorflow as hvd",
    "DistributedGradientTape": "import horovod.tensorflow as hvd",
    "broadcast_variables": "import horovod.tensorflow as hvd",
}
"""Which of Horovod's modules a script means by `hvd`, by what it asks of it; else it is that of PyTorch."""
_MODULE_NAMES = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__"}


@dataclass(frozen=True)
class MissingImports:
    """Names that a script uses, and neither imports nor sets."""

    text: str
    """The usual imports of those that have one, one a line; "" if there are none."""
    leaves_others: bool
    """True if there are others: the script is a piece of a larger one."""


def missing_imports(tree: ast.Module) -> MissingImports:
    """Return what a script lacks; nothing if a star import may bring it."""
    bound_names: set[str] = set(_MODULE_NAMES)
    loaded_names: set[str] = set()
    of_horovod: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (loaded_names if isinstance(node.ctx, ast.Load) else bound_names).add(node.id)
        elif isinstance(node, ast.alias):
            if node.name == "*":
                return MissingImports("", False)
            bound_names.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound_names.add(node.name)
        elif isinstance(node, ast.arg):
            bound_names.add(node.arg)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            bound_names.add(node.name)
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "hvd":
            of_horovod.append(node.attr)
    free_names = loaded_names - bound_names
    imports = [_USUAL_IMPORTS[name] for name in sorted(free_names & _USUAL_IMPORTS.keys())]
    if "hvd" in free_names:
        module = next((_HOROVOD[a] for a in of_horovod if a in _HOROVOD), "")
        imports.append(module or "import horovod.torch as hvd")
    return MissingImports("\n".join(imports), bool(free_names - _USUAL_IMPORTS.keys() - {"hvd"}))
