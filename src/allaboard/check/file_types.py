"""The kind of configuration that a text is: by its file's name if that says it, else by its content."""

from __future__ import annotations

import re

_BY_SUFFIX = {
    ".json": "json",
    ".yaml": "manifest",
    ".yml": "manifest",
    ".py": "python",
    ".ipynb": "notebook",
    ".sh": "shell",
    ".bash": "shell",
    ".sbatch": "shell",
    ".slurm": "shell",
    ".sl": "shell",
    ".job": "shell",
    ".pbs": "shell",
    ".lsf": "shell",
    ".env": "shell",
    ".hostfile": "hostfile",
    ".hosts": "hostfile",
}
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?[A-Za-z_][A-Za-z0-9_]*=")
_HOST_LINE = re.compile(r"\s*[\w.:\[\]-]+(?:\s+(?:max_)?slots?\s*=\s*\S+)*\s*(?:#.*)?$")
_COMMANDS = re.compile(
    r"\s*(?:torchrun|srun|mpirun|mpiexec|horovodrun|deepspeed|accelerate|python3?)\s"
)


_PYTHON_HEADER = re.compile(
    r"\s*(?:def \w+\(|class \w+[(:]|@\w|>>> |(?:if|elif|for|while|with) [^;\n]{1,200}:\s*(?:#.*)?$)"
)
"""Matches lines that begin a block of Python."""


def kind_of(name: str, text: str) -> str:
    """Return json, manifest, hostfile, shell, python, notebook or url; "" if nothing fits."""
    start = text.lstrip()[:4096]
    if kind := kind_of_suffix(name):
        return kind
    if is_hostfile_name(name):
        return "hostfile"
    if start.startswith("#!"):
        return "python" if "python" in start.split("\n")[0] else "shell"
    if start.startswith(("{", "[")):
        return "notebook" if '"cells"' in text and '"nbformat"' in text else "json"
    if re.match(r"(?:tcp|file|env)://\S*\s*\Z", text.strip()[:4096]):
        return "url"
    if re.search(r"^#SBATCH\b", start, re.M):
        return "shell"
    if re.search(r"^(?:apiVersion|kind):", start, re.M):
        return "manifest"
    return _by_lines(start)


def kind_of_suffix(name: str) -> str:
    """Return the kind that a file's suffix says, or ""."""
    file_name = name.rpartition("/")[2].lower()
    return _BY_SUFFIX.get("." + file_name.rpartition(".")[2], "") if "." in file_name else ""


def is_hostfile_name(name: str) -> bool:
    """Return True for the names under which launchers are given hostfiles."""
    file_name = name.rpartition("/")[2].lower()
    return re.search(r"hostfile|machinefile|^hosts$|^nodes$|nodefile", file_name) is not None


def _by_lines(text: str) -> str:
    from allaboard.formats.shell.prompts import without_prompts

    bare_text = without_prompts(text)
    lines = [line for line in bare_text.split("\n")[:200] if line.strip()]
    lines = [line for line in lines if not line.lstrip().startswith("#")]
    if not lines:
        return ""
    if any(map(_PYTHON_HEADER.match, lines)) and not any(map(_COMMANDS.match, lines)):
        return "python"
    if any(_ASSIGNMENT.match(line) or _COMMANDS.match(line) for line in lines):
        return "shell"
    if any(re.match(r"(?:import|from)\s+\w", line) for line in lines):
        return "python"
    return "hostfile" if all(_HOST_LINE.match(line) for line in lines) else ""
