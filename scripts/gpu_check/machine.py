"""What is there to try on: the GPUs, the frameworks, the programs."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

PROGRAMS = ("nvidia-smi", "dcgmi", "ncclras", "ibstat", "dmesg")
MODULES = ("torch", "tensorflow", "jax", "pynvml", "cupy")
PROBE_CUDA = (
    "import torch; print(torch.version.cuda or '', torch.cuda.device_count(), torch.__version__)"
)


@dataclass(frozen=True)
class Machine:
    """What is there."""

    gpus: int = 0
    hardware: str = ""
    frameworks: tuple[str, ...] = ()
    """Names of what can be imported; "torch-cuda" if torch is built for CUDA and sees a GPU."""
    programs: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)

    def lacks(self, needs: tuple[str, ...]) -> str:
        """Return why what has these needs cannot run on this machine; "" if it can."""
        if self.gpus == 0:
            return "no GPU is visible"
        for need in needs:
            if need == "gpus" and self.gpus < 2:
                return "needs two GPUs"
            if need not in ("gpu", "gpus", *self.frameworks, *self.programs):
                return f"needs {need}"
        return ""


def look_at_machine() -> Machine:
    """Return what is installed and visible here."""
    frameworks = [n for n in MODULES if importlib.util.find_spec(n)]
    versions, gpus, hardware = {}, 0, ""
    if shutil.which("nvidia-smi"):
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        done = subprocess.run(query, capture_output=True, text=True, timeout=60, check=False)
        lines = done.stdout.strip().splitlines() if done.returncode == 0 else []
        gpus, hardware = len(lines), f"{len(lines)} x {lines[0]}" if lines else ""
    if "torch" in frameworks:
        probe = [sys.executable, "-c", PROBE_CUDA]
        done = subprocess.run(probe, capture_output=True, text=True, timeout=120, check=False)
        cuda, count, version = [*done.stdout.rsplit(" ", 2), "", "", ""][:3]
        versions["torch"] = f"{version.strip()} (CUDA {cuda or 'none'})"
        if cuda and count.isdecimal() and int(count):
            frameworks.append("torch-cuda")
            gpus = gpus or int(count)
    return Machine(
        gpus=gpus,
        hardware=hardware or (f"{gpus} GPUs" if gpus else "no GPU"),
        frameworks=tuple(frameworks),
        programs=tuple(p for p in PROGRAMS if shutil.which(p)),
        versions=versions,
    )
