"""What a member runs with, as far as differences between members may matter.

Only an allow-list of variables is read, and never a value that may be a secret.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from allaboard.hosts import open_file_limit, proc
from allaboard.late_pattern import compile_late

PREFIXES = ("NCCL_", "GLOO_", "TF_", "XLA_", "JAX_", "GRPC_", "TORCH_", "PYTORCH_", "CUBLAS_",
            "OMP_", "MKL_", "KMP_")  # fmt: skip
NAMES = ("LD_LIBRARY_PATH", "CUDA_HOME", "LANG", "LC_ALL", "PYTHONHASHSEED")
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "grpc_proxy")
_OWN = ("TF_CONFIG", "JAX_PROCESS_ID", "JAX_COORDINATOR_ADDRESS", "TORCH_FR", "TORCHELASTIC")
_SECRET = compile_late(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|KEY|AUTH|COOKIE|WEBHOOK|CONNECTION_?STRING"
    r"|(?<![A-Z])(?:PASS|PWD|JWT)(?![A-Z])"
)
"""In a variable's name; what counts NCCL's or XLA's passes is none."""

MAX_PACKED_NBYTES = 1 << 20
"""Bytes of packed-refs that are read."""
SHOWN_DIGITS = 12
"""Digits of a commit that are kept."""


def runtime_fingerprint(pid: int, argv: list[str], notes: Mapping[str, str]) -> dict[str, str]:
    """Return facts by name: versions that the probe noted, hash and commit of the script,
    variables, limits."""
    facts = {f"version {name}": value for name, value in notes.items() if value[:1].isdecimal()}
    facts |= {
        f"variable {k}": v for k, v in relevant_variables(proc.initial_environment(pid)).items()
    }
    facts |= _limits()
    script = _script(pid, argv)
    if script is not None:
        try:
            facts["script"] = hashlib.sha256(script.read_bytes()).hexdigest()[:12]
            facts["script path"] = str(script)
        except OSError:
            pass
        commit = read_commit(script)
        if commit:
            facts["commit"] = commit
    return facts


def relevant_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that may matter to a job; for proxies only that they are set."""
    relevant = {}
    for name, value in environment.items():
        if name.lower() in PROXIES:
            relevant[name.lower()] = "set" if value else ""
        elif name.startswith(_OWN) or _SECRET.search(name.upper()):
            continue
        elif name in NAMES or name.startswith(PREFIXES):
            relevant[name] = value[:200]
    return relevant


def _limits() -> dict[str, str]:
    shm = os.statvfs("/dev/shm") if Path("/dev/shm").is_dir() else None
    return {
        "limit open files": str(open_file_limit.SOFT_LIMIT_AT_START),
        "size /dev/shm": f"{shm.f_frsize * shm.f_blocks >> 20} MiB" if shm is not None else "none",
        "count CPUs": str(os.cpu_count()),
        "count GPUs": str(len(list(Path("/dev").glob("nvidia[0-9]*")))),
    } | gpu_types()


def gpu_types(root: Path = Path("/proc/driver/nvidia/gpus")) -> dict[str, str]:
    """Return how many GPUs of which models the driver lists ("8 x NVIDIA H100"); empty if there is none."""
    models: Counter[str] = Counter()
    try:
        for file in root.glob("*/information"):
            line = next(x for x in file.read_text().splitlines() if x.startswith("Model:"))
            models[line.removeprefix("Model:").strip()[:80]] += 1
    except (OSError, StopIteration, UnicodeDecodeError):
        return {}
    text = ", ".join(f"{n} x {model}" for model, n in sorted(models.items()))
    return {"type GPUs": text} if text else {}


def _script(pid: int, argv: list[str]) -> Path | None:
    if not argv or argv[0] in ("", "-c", "-m"):
        return None
    try:
        folder = Path(f"/proc/{pid}/cwd").readlink()
    except OSError:
        folder = Path.cwd()
    script = folder / argv[0]
    return script if script.is_file() else None


def read_commit(script: Path) -> str:
    """Return the commit that the script's folder is at; "" if there is none, or it cannot be read.

    See gitrepository-layout(5): a worktree and a submodule have a file in place of the folder ``.git``.
    """
    for folder in script.resolve().parents:
        marker = folder / ".git"
        try:
            if not marker.exists():
                continue
            git = _git_folder(marker)
            head = (git / "HEAD").read_text().strip()
            if head.startswith("ref: "):
                head = _resolve(git, head[5:])
            return head[:SHOWN_DIGITS]
        except (OSError, UnicodeDecodeError):
            return ""
    return ""


def _git_folder(marker: Path) -> Path:
    if marker.is_dir():
        return marker
    return marker.parent / marker.read_text().strip().removeprefix("gitdir: ")


def _resolve(git: Path, name: str) -> str:
    """Return the commit of a branch: its own file, or its line in packed-refs."""
    folders = [git]
    common = git / "commondir"
    if common.is_file():
        folders.append(git / common.read_text().strip())
    for folder in folders:
        if (folder / name).is_file():
            return (folder / name).read_text().strip()
    for folder in folders:
        packed = folder / "packed-refs"
        if packed.is_file():
            with packed.open() as file:
                for line in file.read(MAX_PACKED_NBYTES).splitlines():
                    commit, _, ref = line.partition(" ")
                    if ref == name:
                        return commit
    return ""
