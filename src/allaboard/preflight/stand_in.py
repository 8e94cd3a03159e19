"""Stands in for the training script: arrives at the roll call as it would, and tries one collective.

It is run by path, in the user's Python, where allaboard need not be installed; the probe is loaded as
in any worker. ALLABOARD_PREFLIGHT says what it is to declare.
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

SIZE = 1 << 22
"""Elements of float32 in the collective: 16 MiB, more than any buffer on the way."""
ALONE = 60.0
"""Seconds beyond the bound in which an agent has ended it, on a busy machine too."""
PACKAGES = {"torch": ("torch",), "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-gpu"),
            "jax": ("jax",), "jaxlib": ("jaxlib",), "numpy": ("numpy",)}  # fmt: skip


def main() -> int:
    os.dup2(2, 1)  # standard output is the tables' alone, and frameworks write on it
    told = json.loads(os.environ["ALLABOARD_PREFLIGHT"])
    member: Any = importlib.import_module("_allaboard_probe.member")
    member.here.raises = (
        True  # the agent says why the gate stays shut, and that is all there is to say
    )
    # To go on alone would try nothing: an agent on a busy machine is waited for.
    gate: Any = importlib.import_module("_allaboard_probe.gate")
    gate.DEAF = ALONE
    declared, bound = told["declared"], float(told["bound"])
    if declared["origin"].startswith(
        "--hosts"
    ):  # no variable that the framework read was the user's
        arrive = member.arrive
        member.arrive = lambda said: arrive({**said, "origin": declared["origin"]})
    framework = declared["framework"]
    for name, version in versions(framework).items():
        member.here.note(name, version)
    if told["mode"] == "quick":
        member.arrive(declared)
        member.joined(True)
        return 0
    if importlib.util.find_spec(framework) is None:
        sys.stderr.write(
            f"allaboard preflight: {framework} is not installed for {sys.executable}; "
            "--quick leaves its collective out\n"
        )
        return 1
    what, took = COLLECTIVES[framework](declared, member, bound)
    member.here.note("collective", f"{what} in {took:.1f} ms")
    member.step()
    return 0


def versions(framework: str) -> dict[str, str]:
    """Of the packages that must agree in a job of this framework, without importing them."""
    found = {"python": sys.version.split()[0]}
    others = {"torch", "tensorflow", "jax"} - {framework}
    for name, distributions in PACKAGES.items():
        if name.removesuffix("lib") in others:
            continue
        for distribution in distributions:
            try:
                found[name] = importlib.metadata.version(distribution)
                break
            except importlib.metadata.PackageNotFoundError:
                continue
    return found


def _timed(call: Any, bound: float) -> float:
    """Milliseconds of the second call: the first one makes the connections. A call that never comes
    back is the agent's to end; should there be none any more, the process ends itself."""
    faulthandler.dump_traceback_later(3 * bound + ALONE, exit=True, file=2)
    call()
    began = time.monotonic()
    call()
    took = (time.monotonic() - began) * 1e3
    faulthandler.cancel_dump_traceback_later()
    return took


def _torch(declared: dict[str, Any], member: Any, bound: float) -> tuple[str, float]:
    import torch
    import torch.distributed as dist

    device = "cpu"
    if torch.cuda.is_available():
        local = int(os.environ.get("LOCAL_RANK", "0"))
        device = f"cuda:{local % torch.cuda.device_count()}"
        torch.cuda.set_device(device)
    backend = "gloo" if device == "cpu" else "nccl"
    dist.init_process_group(backend, rank=declared["rank"], world_size=declared["world_size"])
    tensor = torch.ones(SIZE, device=device)

    def call() -> None:
        tensor.fill_(1.0)
        dist.all_reduce(tensor)
        if float(tensor[-1]) != declared["world_size"]:
            raise ValueError(f"all_reduce gave {float(tensor[-1])}")

    took = _timed(call, bound)
    dist.destroy_process_group()
    return f"all_reduce of {SIZE >> 18} MiB over {backend}", took


def _tensorflow(declared: dict[str, Any], member: Any, bound: float) -> tuple[str, float]:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    tf = importlib.import_module("tensorflow")
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    @tf.function  # type: ignore[untyped-decorator,unused-ignore]
    def reduced() -> Any:
        def replica() -> Any:
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([SIZE]))[-1]

        return strategy.run(replica)

    took = _timed(lambda: strategy.experimental_local_results(reduced())[0].numpy(), bound)
    return f"all_reduce of {SIZE >> 18} MiB, MultiWorkerMirroredStrategy", took


def _jax(declared: dict[str, Any], member: Any, bound: float) -> tuple[str, float]:
    os.environ.setdefault("JAX_CPU_COLLECTIVES_IMPLEMENTATION", "gloo")
    jax = importlib.import_module("jax")
    place = declared["place"].partition("://")[2]
    jax.distributed.initialize(place, declared["world_size"], declared["rank"])
    multihost = importlib.import_module("jax.experimental.multihost_utils")
    numpy = importlib.import_module("numpy")
    hooks = importlib.import_module("_allaboard_probe.hooks")
    call = hooks.operation("process_allgather", multihost.process_allgather)
    ones = numpy.ones(SIZE, dtype=numpy.float32)
    took = _timed(lambda: numpy.asarray(call(ones)), bound)
    jax.distributed.shutdown()
    return f"process_allgather of {SIZE >> 18} MiB a process", took


COLLECTIVES = {"torch": _torch, "tensorflow": _tensorflow, "jax": _jax}

if __name__ == "__main__":
    sys.exit(main())
