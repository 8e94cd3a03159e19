"""A meeting place that is not the first node of the job: the host that called srun, or localhost."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allaboard.configuration.slurm_steps.started_step import StartedStep
from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import OPAQUE, Material, Origin, Problem
from allaboard.formats.shell.source_lines import command_text

_CALLER_VARIABLES = {
    "SLURM_LAUNCH_NODE_IPADDR": "the host where srun is called, and empty in the batch script, where no step "
    "has begun",
    "SLURM_SRUN_COMM_HOST": "the host where srun is called, and empty in the batch script, where no step has "
    "begun",
    "SLURM_SUBMIT_HOST": "the host where the job was submitted, which is no node of it",
}
"""Variables with the address of another host than the first node, and which host that is (OUTPUT ENVIRONMENT
VARIABLES of sbatch(1) and srun(1))."""
_FIRST_NODE = '$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)'
_THIS_HOST = r"[\"']?(?P<host>localhost|127\.0\.0\.1|0\.0\.0\.0|::1)\b"
_FALLBACKS = (
    ("where the command fails", re.compile(
        rf"(?P<name>\b\w+=|--[\w-]+[= ])[\"']?(?:\$\(|`)[^\n]*?\|\|\s*(?:echo|printf)\s+{_THIS_HOST}")),
    ("where the command fails", re.compile(rf"\|\|\s*(?:export\s+)?(?P<name>\w+=){_THIS_HOST}")),
    ("where the variable is not set", re.compile(
        rf"(?P<name>\b\w+=|--[\w-]+[= ])[\"']?\$\{{\w+:?-{_THIS_HOST}[\"']?\}}")),
    ("where the variable is not set", re.compile(rf"^\s*:\s+[\"']?\$\{{(?P<name>\w+):?={_THIS_HOST}")),
    ("where the variable is not set", re.compile(
        rf"-z\s+[\"']?\$\{{?\w+[^\n]*\]\s*(?:;|&&)\s*(?:then\s+)?(?:export\s+)?(?P<name>\w+=){_THIS_HOST}")),
)  # fmt: skip
"""Ways to fall back to this host, each with the case in which that happens."""
_ADDRESS_SETTING = r"(?:--master[-_]addr|--rdzv[-_]endpoint|--main[-_]process[-_]ip|\bMASTER_ADDR=)"


def caller_addresses(step: StartedStep, material: Material) -> Iterator[Problem]:
    """Yield a problem for a meeting place that is the host where srun was called."""
    request = step.request
    nodes = request.node_count if request.is_certain else None
    if nodes is None or nodes < 2:
        return
    exported = material.partly.get("MASTER_ADDR", "")
    for name, host in _CALLER_VARIABLES.items():
        mark = f"{OPAQUE}{name}{OPAQUE}"
        setting = re.search(rf"({_ADDRESS_SETTING})[= ]?[\"']?{mark}", step.text)
        if setting is None and mark not in exported:
            continue
        flag = setting[1].rstrip("=") if setting else "MASTER_ADDR"
        yield launch_problem(
            step.flags.program_words[0],
            message=f"{flag} is ${name}: {host}",
            correction=_corrected_step(step, material, name),
            observed=f"${name}, expanded before the step",
        )
        return


def _corrected_step(step: StartedStep, material: Material, name: str) -> str:
    """Return the step's own line with the job's first node instead, which is looked up before."""
    line = command_text(material.text, step.flags.program_words[0].origin.line)
    changed = re.sub(rf"\$(?:{name}\b|\{{{name}\}})", "$head", line)
    if not changed or changed == line:
        return f"head={_FIRST_NODE}   # before srun; then $head in place of ${name}"
    return f"head={_FIRST_NODE}; {changed}"


def localhost_fallbacks(material: Material, node_count: int) -> Iterator[Problem]:
    """Yield a problem for an address that is localhost where a command fails or a variable is not set,
    although a launcher expects ``node_count`` nodes there."""
    if node_count < 2:
        return
    lines = material.text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#"):
            continue
        for cause, pattern in _FALLBACKS:
            match = pattern.search(line)
            if match is None or not _is_meeting_place(match["name"], lines[number - 1 :]):
                continue
            name = match["name"].rstrip("= ")
            yield Problem(
                kind="launch.warning",
                message=f"{name} is {match['host']} {cause}: each of the {node_count} nodes meets itself "
                "there",
                observed=match[0].strip()[:100],
                correction=_without_fallback(name, material),
                origin=Origin(file=material.file, line=number, column=match.start() + 1),
            )
            return


def _without_fallback(setting: str, material: Material) -> str:
    """Return the line that stops where there is no address, instead of going on alone."""
    name = setting.lstrip("-").replace("-", "_").upper() if setting.startswith("-") else setting
    if "SLURM" in material.text or "scontrol" in material.text:
        return f'{name}={_FIRST_NODE}; [ -n "${name}" ] || exit 1'
    return f': "${{{name}:?is the name of the first host}}"   # stops where it is not set'


def _is_meeting_place(setting: str, following_lines: list[str]) -> bool:
    """Return True if the setting is an address flag, or a variable that a later line uses for one."""
    name = setting.rstrip("= ")
    if re.match(_ADDRESS_SETTING, setting) or name == "MASTER_ADDR":
        return True
    used = re.compile(rf"{_ADDRESS_SETTING}[= ]?[\"']?\$\{{?{re.escape(name)}\b")
    return any(used.search(line) for line in following_lines)
