"""The stand-in for the training script: it arrives at the roll call as the script would, and tries one
collective.

It is run by path, in the user's Python, where allaboard need not be installed; the probe is loaded as in any
worker. ALLABOARD_PREFLIGHT holds its settings.
"""

from __future__ import annotations

import faulthandler
import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COLLECTIVE_ELEMENTS = 1 << 22
"""Elements (float32) of the collective: 16 MiB, more than any buffer on the way."""
UNATTENDED_S = 60.0
"""How much longer than its bound the collective may take: an agent has ended it by then, even on a busy
machine."""
COMPARED_PACKAGES = {"torch": ("torch",), "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu"),
            "jax": ("jax",), "jaxlib": ("jaxlib",), "numpy": ("numpy",)}  # fmt: skip


def main() -> int:
    """Arrive at the roll call, try one collective unless the mode is quick, and return the exit code."""
    os.dup2(2, 1)  # frameworks write to standard output, which is for the tables alone
    settings = json.loads(os.environ["ALLABOARD_PREFLIGHT"])
    member: Any = importlib.import_module("_allaboard_probe.member")
    # The agent says why the gate stays shut, and that is all there is to say.
    member.here.raises = True
    # To go on alone would try nothing: an agent on a busy machine is waited for.
    gate: Any = importlib.import_module("_allaboard_probe.gate")
    gate.SILENT_AGENT_S = UNATTENDED_S
    declared, stall_limit_s = settings["declared"], float(settings["bound"])
    # Then no variable that the framework read was the user's.
    if declared["origin"].startswith("--hosts"):
        arrive = member.arrive
        member.arrive = lambda declaration: arrive({**declaration, "origin": declared["origin"]})
    framework = declared["framework"]
    for name, version in package_versions(framework).items():
        member.here.note(name, version)
    if settings["mode"] == "quick":
        member.arrive(declared)
        member.joined(True)
        return 0
    if importlib.util.find_spec(framework) is None:
        sys.stderr.write(
            f"allaboard preflight: {framework} is not installed for {sys.executable}; "
            "--quick leaves its collective out\n"
        )
        return 1
    operation, milliseconds = COLLECTIVES[framework](declared, member, stall_limit_s)
    member.here.note("collective", f"{operation} in {milliseconds:.1f} ms")
    member.step()
    return 0


def package_versions(framework: str) -> dict[str, str]:
    """Return the versions of the packages that must agree in a job of this framework, without importing
    them."""
    versions = {"python": sys.version.split()[0]}
    other_frameworks = {"torch", "tensorflow", "jax"} - {framework}
    for name, distributions in COMPARED_PACKAGES.items():
        if name.removesuffix("lib") in other_frameworks:
            continue
        for distribution in distributions:
            try:
                versions[name] = importlib.metadata.version(distribution)
                break
            except importlib.metadata.PackageNotFoundError:
                continue
    return versions


def _time_second_call(call: Any, stall_limit_s: float) -> float:
    """Return the milliseconds of the second call; the first call makes the connections.

    The agent ends a call that never returns. If there is no agent any more, the process ends itself.
    """
    # faulthandler's own thread needs no GIL: the collective may hold that in native code.
    faulthandler.dump_traceback_later(3 * stall_limit_s + UNATTENDED_S, exit=True, file=2)
    call()
    started_at = time.monotonic()
    call()
    milliseconds = (time.monotonic() - started_at) * 1e3
    faulthandler.cancel_dump_traceback_later()
    return milliseconds


def _torch(declaration: dict[str, Any], member: Any, stall_limit_s: float) -> tuple[str, float]:
    import torch
    import torch.distributed as dist

    device = "cpu"
    if torch.cuda.is_available():
        local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        device = f"cuda:{local_rank % torch.cuda.device_count()}"
        torch.cuda.set_device(device)
    backend = "gloo" if device == "cpu" else "nccl"
    dist.init_process_group(backend, rank=declaration["rank"], world_size=declaration["world_size"])
    tensor = torch.ones(COLLECTIVE_ELEMENTS, device=device)

    def call() -> None:
        tensor.fill_(1.0)
        dist.all_reduce(tensor)
        if float(tensor[-1]) != declaration["world_size"]:
            raise ValueError(f"all_reduce gave {float(tensor[-1])}")

    milliseconds = _time_second_call(call, stall_limit_s)
    dist.destroy_process_group()
    return f"all_reduce of {COLLECTIVE_ELEMENTS >> 18} MiB over {backend}", milliseconds


def _tensorflow(
    declaration: dict[str, Any], member: Any, stall_limit_s: float
) -> tuple[str, float]:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    tf = importlib.import_module("tensorflow")
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    @tf.function  # type: ignore[untyped-decorator,unused-ignore]
    def reduced() -> Any:
        def replica() -> Any:
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([COLLECTIVE_ELEMENTS]))[
                -1
            ]

        return strategy.run(replica)

    milliseconds = _time_second_call(
        lambda: strategy.experimental_local_results(reduced())[0].numpy(), stall_limit_s
    )
    return (
        f"all_reduce of {COLLECTIVE_ELEMENTS >> 18} MiB, MultiWorkerMirroredStrategy",
        milliseconds,
    )


def _jax(declaration: dict[str, Any], member: Any, stall_limit_s: float) -> tuple[str, float]:
    os.environ.setdefault("JAX_CPU_COLLECTIVES_IMPLEMENTATION", "gloo")
    jax = importlib.import_module("jax")
    address = declaration["place"].partition("://")[2]
    jax.distributed.initialize(address, declaration["world_size"], declaration["rank"])
    multihost = importlib.import_module("jax.experimental.multihost_utils")
    numpy = importlib.import_module("numpy")
    hooks = importlib.import_module("_allaboard_probe.hooks")
    call = hooks.operation("process_allgather", multihost.process_allgather)
    ones = numpy.ones(COLLECTIVE_ELEMENTS, dtype=numpy.float32)
    milliseconds = _time_second_call(lambda: numpy.asarray(call(ones)), stall_limit_s)
    jax.distributed.shutdown()
    return f"process_allgather of {COLLECTIVE_ELEMENTS >> 18} MiB a process", milliseconds


COLLECTIVES = {"torch": _torch, "tensorflow": _tensorflow, "jax": _jax}

if __name__ == "__main__":
    sys.exit(main())
