"""The steps: what is tried, what it shows, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench import Bench, Outcome
from faults import (
    dumps_say,
    kernel_hangs,
    kernel_log,
    leftover,
    out_of_memory,
    pid_says,
    run_says,
    stopped_rank,
)
from machine import Machine
from training import readings, train_healthy, train_other, train_torch

from instruments import ask_ras, ask_ras_stopped, read_instrument


@dataclass(frozen=True)
class Step:
    """One row: what is tried, and what it needs."""

    name: str
    shows: str
    needs: tuple[str, ...]
    run: Callable[[Bench], Outcome]
    timeout_s: float = 120.0
    """Seconds after which everything that it started is ended."""
    on_cpu: bool = False
    """True if --cpu runs it without a GPU."""
    alone: bool = False
    """True if it needs the GPU's memory for itself: it runs after the others."""


CUDA = ("torch-cuda",)
_AT_JOB = r" at nccl_job\.py:\d+ in sleep"
STEPS = (
    Step("nvidia-smi", "nvidia-smi -q -x is read", ("nvidia-smi",),
         read_instrument("nvidia-smi", "-q", "-x")),
    Step("dcgm-health", "dcgmi health is read", ("dcgmi",), read_instrument("dcgmi", "health", "-c")),
    Step("ibstat", "ibstat is read", ("ibstat",), read_instrument("ibstat")),
    Step("torch-nccl-1", "one rank trains with nccl", CUDA, train_torch("nccl", lambda b: 1)),
    Step("torch-nccl-all", "a rank on each GPU trains with nccl", ("torch-cuda", "gpus"),
         train_torch("nccl", lambda b: min(8, b.machine.gpus))),
    Step("readings", "the numbers of driver and framework are shown", ("torch-cuda", "pynvml"), readings),
    Step("torch-gloo", "two ranks train with gloo", CUDA, train_torch("gloo", lambda b: 2), on_cpu=True),
    Step("tensorflow", "TensorFlow trains", ("gpu", "tensorflow"), train_other("tf_job.py"), 150, True),
    Step("jax", "JAX trains", ("gpu", "jax"), train_other("jax_job.py"), 150, True),
    Step("healthy-graph", "CUDA graphs with collectives: the same losses", CUDA, train_healthy("graph")),
    Step("healthy-amp", "mixed precision: the same losses", CUDA, train_healthy("amp")),
    Step("healthy-fsdp", "FSDP2: the same losses", CUDA, train_healthy("fsdp")),
    Step("healthy-loader", "a DataLoader, streams, async collectives: the same losses", CUDA,
         train_healthy("loader")),
    Step("healthy-compile", "torch.compile: the same losses", CUDA, train_healthy("compile"), 200),
    Step("ras", "NCCL's service is asked about a job that trains", CUDA, ask_ras),
    Step("ras-stopped", "NCCL's service misses a stopped rank", CUDA, ask_ras_stopped),
    Step("nccl-sleep", "a rank that does not come is named (nccl)", CUDA,
         run_says("sleep", f"HANG005[^\n]*worker 1 is asleep{_AT_JOB}[^\n]*", "worker 0 does not go on")),
    Step("nccl-spin", "a rank whose GPU does not finish is named", CUDA,
         run_says("spin", "worker 1 [^\n]*nccl_job.py:[^\n]*", "worker 0 does not go on")),
    Step("nccl-other", "another collective on one rank is named", CUDA,
         run_says("other", "HANG009[^\n]*rank 1 called broadcast where rank 0 called all_reduce")),
    Step("nccl-shape", "another size on one rank is named", CUDA,
         run_says("shape", "NUM002[^\n]*rank 1 passed 5000000 elements[^\n]*")),
    Step("nccl-killed", "a rank that was killed is named, not its victims", CUDA,
         run_says("kill", "EXIT001[^\n]*worker 1 was killed by SIGKILL", "worker 0 (?:raised|failed)")),
    Step("nccl-assert", "a device-side assert is named", CUDA,
         run_says("assert", "EXIT002[^\n]*worker 1[^\n]*", "worker 0 (?:raised|failed)|worker 0 \\(rank")),
    Step("nccl-nan", "a loss that is not a number is named", CUDA,
         run_says("nan", "NUM00[^\n]*", ends_well=True)),
    Step("nccl-slow", "a rank that is late in every step is named", CUDA,
         run_says("none", "SLOW010[^\n]*worker 1[^\n]*", ends_well=True,
                  words=("--slow", "--steps", "500"))),
    Step("nccl-even", "of ranks that are equally fast none is called slow", CUDA,
         run_says("none", "trained 3000 steps[^\n]*", never="SLOW0", ends_well=True,
                  words=("--steps", "3000"))),
    Step("nccl-duplicate", "two ranks on one GPU are named", CUDA,
         run_says("duplicate", "rank \\d and rank \\d use one GPU[^\n]*")),
    Step("nccl-stopped", "a stopped rank is named (nccl)", CUDA,
         run_says("stop", "HANG001[^\n]*worker 1 is stopped[^\n]*", "worker 0 does not go on")),
    Step("pid-sleep", "a hang is explained by one pid (nccl)", CUDA,
         pid_says("sleep", f"worker 1[^\n]*asleep{_AT_JOB}; the others wait for it|"
                  "worker 0 waits for worker 1[^\n]*")),
    Step("pid-stopped", "a stopped rank is found by another's pid (nccl)", CUDA,
         pid_says("stop", "HANG001[^\n]*worker 1 is stopped[^\n]*")),
    Step("dumps-sleep", "logs and recorder dumps after a timeout name the rank that did not come", CUDA,
         dumps_say("sleep", "rank 1[^\n]*(?:did not|has not|never|behind)[^\n]*")),
    Step("kernel-hangs", "a rank whose kernel does not end is shown", CUDA, kernel_hangs),
    Step("gloo-stopped", "a stopped rank is named (gloo)", CUDA, stopped_rank("gloo"), on_cpu=True),
    Step("out-of-memory", "a rank without memory on its GPU is named", CUDA, out_of_memory, alone=True),
    Step("leftover", "a process that holds memory is named", ("torch-cuda", "nvidia-smi", "pynvml"), leftover,
         alone=True),
    Step("kernel-log", "Xid errors of the kernel's log are named", ("gpu", "dmesg"), kernel_log, alone=True),
)  # fmt: skip


def why_not(step: Step, machine: Machine, cpu: bool) -> str:
    """Return why a step cannot run on this machine; "" if it can. Pure."""
    if not cpu:
        return machine.lacks(step.needs)
    wanted = [n for n in step.needs if n in ("tensorflow", "jax")] or ["torch"]
    lacking = [n for n in wanted if n not in machine.frameworks]
    if not step.on_cpu:
        return "has no form without a GPU"
    return f"needs {', '.join(lacking)}" if lacking else ""
