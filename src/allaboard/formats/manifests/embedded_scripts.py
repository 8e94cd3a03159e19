"""Shell scripts inside YAML files: of containers, of a workflow's steps, of files in a ConfigMap.

Only texts that are certainly a shell's are read: the word after ``bash -c``, a step's ``run`` whose shell is
bash or sh (GitHub's "Workflow syntax" and "Metadata syntax": bash by default, except on Windows), a file of a
ConfigMap whose name or first line says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from allaboard.facts import ManifestFacts, Node, Origin, Value
from allaboard.formats.manifests.compose import is_compose
from allaboard.formats.shell.nested import read_inner_script, read_nested_scripts
from allaboard.formats.shell.script import Script, read_inner_commands

_EXPRESSION = re.compile(r"\$\{\{[^{}\n]*\}\}")
_POSIX = re.compile(r"(?:ba)?sh\b")
_SCRIPT_NAME = re.compile(r".*\.(?:sh|bash|sbatch|slurm|sl)\Z")
_SHEBANG = re.compile(r"#!\s*(?:/usr/bin/env\s+)?\S*?\b(?:ba|z|da)?sh\b")


def workload_scripts(manifests: ManifestFacts, file: str) -> Iterator[Script]:
    """Yield the scripts that the containers of these workloads run."""
    for workload in manifests.workloads:
        for role in workload.roles:
            yield from read_nested_scripts([role.command], file, role.env)


def service_scripts(tree: Node, file: str) -> Iterator[Script]:
    """Yield the scripts that the services of a Compose file run.

    A command that is one text is no script: it is split into words at blanks and line ends alike.
    """
    services = tree.node_at("services")
    for service in services.items.values() if services is not None else ():
        for field in ("entrypoint", "command"):
            node = service.node_at(field)
            if node is not None and node.kind == "list":
                yield from read_nested_scripts([[_value(e, file) for e in node.elements]], file)
            elif node is not None and node.kind == "string":
                yield from read_nested_scripts(
                    read_inner_commands(_value(node, file), file)[:1], file
                )


def workflow_scripts(tree: Node, file: str) -> Iterator[Script]:
    """Yield the scripts of a GitHub workflow, or of a composite action."""
    jobs = tree.node_at("jobs")
    for job in jobs.items.values() if jobs is not None and jobs.kind == "map" else ():
        default_shell = (
            _default_shell(job)
            or _default_shell(tree)
            or ("" if _may_run_on_windows(job) else "bash")
        )
        yield from _steps(job.node_at("steps"), default_shell, file)
    yield from _steps(tree.node_at("runs", "steps"), "", file)


def config_map_scripts(tree: Node, file: str) -> Iterator[Value]:
    """Yield the shell scripts that a ConfigMap has for files."""
    data = tree.node_at("data") if tree.text_at("kind") == "ConfigMap" else None
    for name, node in data.items.items() if data is not None else ():
        if node.kind == "string" and (_SCRIPT_NAME.match(name) or _SHEBANG.match(node.text)):
            yield _value(node, file)


def _steps(steps: Node | None, default_shell: str, file: str) -> Iterator[Script]:
    for step in steps.elements if steps is not None else ():
        run = step.node_at("run")
        if (
            run is None
            or run.kind != "string"
            or not _POSIX.match(step.text_at("shell") or default_shell)
        ):
            continue
        word = _value(run, file)
        # What GitHub fills in is not known; every place stays where it is.
        text = _EXPRESSION.sub(lambda m: "$(" + " " * (len(m[0]) - 3) + ")", word.text)
        script = read_inner_script(Value(text, word.origin), file)
        yield script
        yield from read_nested_scripts(script.commands, file)


def _default_shell(node: Node) -> str:
    return node.text_at("defaults", "run", "shell")


def _may_run_on_windows(job: Node) -> bool:
    """Return True if the job may run on Windows, where the default shell is another one."""
    open_nodes = [n for n in (job.node_at("runs-on"), job.node_at("strategy")) if n is not None]
    visited: set[int] = set()
    while open_nodes:
        node = open_nodes.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        if "windows" in node.text.lower():
            return True
        open_nodes += [*node.items.values(), *node.elements]
    return False


def _value(node: Node, file: str) -> Value:
    return Value(node.text, Origin(file=file, line=node.line, column=node.column, parts=node.parts))


def embedded_scripts(
    documents: Iterable[Node], manifests: ManifestFacts, file: str
) -> Iterator[Script]:
    """Yield all scripts of a file, each with its position there."""
    yield from workload_scripts(manifests, file)
    for tree in documents:
        if tree.kind != "map":
            continue
        if is_compose(tree):
            yield from service_scripts(tree, file)
        yield from workflow_scripts(tree, file)
        yield from (read_inner_script(word, file) for word in config_map_scripts(tree, file))
