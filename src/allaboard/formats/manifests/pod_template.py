"""The parts of a pod template that decide how its pods find each other."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from allaboard.facts import OPAQUE, Node, Origin, Part, Problem, Role, Value
from allaboard.formats.shell.script import read_inner_commands
from allaboard.formats.source_map import position_after

_TRAINING = ("tensorflow", "pytorch", "mpi", "trainer", "node")
"""Names under which operators look for the training container; else it is the first one."""

_GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/i915")
"""Resources that count whole devices, one for a rank; a MIG slice or a shared GPU is none."""
MAX_EXPANDED_LENGTH = 2**20
"""Characters of a text that is put together from a container's variables."""
_PLACEHOLDER = re.compile(r"\$(?:[A-Za-z_]\w*|\{[A-Za-z_]\w*\})")
_FILLED_IN_FIELDS = frozenset(
    (
        "replicas", "parallelism", "completions", "numNodes", "slotsPerWorker", "nprocPerNode",
        "numProcPerNode", "size", "image", "namespace", "nvidia.com/gpu",
    )
)  # fmt: skip
"""Fields in which no shell and no Kubernetes expands a ``$NAME``."""
_REFERENCE = re.compile(r"\$?\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


class PodTemplateReader:
    """Reader of one file's documents; what is wrong in them is added to ``problems``."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.is_template = False
        """True while a document is read whose ``$NAME`` are filled in before it is applied (envsubst)."""

    def origin_of(self, node: Node, key: str, variable: str = "") -> Origin:
        return Origin(
            variable=variable,
            key=key,
            file=self.file,
            line=node.line,
            column=node.column,
            parts=node.parts,
        )

    def value_of(self, node: Node | None, key: str) -> Value | None:
        """Return a scalar as a value; None if there is none."""
        if node is None or node.kind in ("map", "list", "null"):
            return None
        return Value(node.text, self.origin_of(node, key))

    def texts_of(self, node: Node, *path: str) -> dict[str, str]:
        """Return a map of texts, such as labels; empty if there is none."""
        node_found = node.node_at(*path)
        return {k: n.text for k, n in node_found.items.items()} if node_found is not None else {}

    def read_role(self, name: str, counted: Node, template: Node | None) -> Role:
        """Return one group of pods; ``counted`` has replicas or parallelism, 1 by default."""
        prefix = f"{name}." if name else ""
        replicas = self.value_of(counted.node_at("replicas"), prefix + "replicas") or self.value_of(
            counted.node_at("parallelism"), prefix + "parallelism"
        )
        if replicas is None:
            replicas = Value("1", self.origin_of(counted, prefix + "replicas (default)"))
        pod = template.node_at("spec") if template is not None else None
        if pod is None or template is None:
            return Role(name=name, replicas=replicas, origin=self.origin_of(counted, name))
        containers = pod.node_at("containers")
        container_nodes = containers.elements if containers is not None else []
        training = next((c for c in container_nodes if c.text_at("name") in _TRAINING), None)
        main = training or (
            container_nodes[0] if container_nodes else Node("map", pod.line, pod.column)
        )
        env, computed = self._env(main.node_at("env"))
        words = self._words(main, env)
        names = (self.value_of(c.node_at("name"), "containers.name") for c in container_nodes)
        return Role(
            name=name,
            replicas=replicas,
            ports=self._ports(main.node_at("ports")),
            env=env,
            computed=computed,
            command=words,
            commands=_with_inner_commands(words, self.file),
            labels=self.texts_of(template, "metadata", "labels"),
            annotations=self.texts_of(template, "metadata", "annotations"),
            subdomain=self.value_of(pod.node_at("subdomain"), "subdomain"),
            fixed=self.value_of(pod.node_at("hostname"), "hostname"),
            host_network=pod.text_at("hostNetwork") == "true",
            service_links=pod.text_at("enableServiceLinks") != "false"
            and main.node_at("envFrom") is None,
            containers=tuple(n for n in names if n is not None),
            gpus=self._gpus(main.node_at("resources"), prefix + "resources"),
            ready_port=self._ready_port(main),
            ready_command=self._ready_command(main),
            origin=self.origin_of(pod, name),
        )

    def read_trainer(self, node: Node) -> Role:
        """Return the role of a TrainJob's trainer section, which has a container's fields at its top."""
        replicas = self.value_of(node.node_at("numNodes"), "spec.trainer.numNodes")
        env, computed = self._env(node.node_at("env"))
        words = self._words(node, env)
        return Role(
            name="node",
            replicas=replicas
            or Value("1", self.origin_of(node, "spec.trainer.numNodes (default)")),
            env=env,
            computed=computed,
            command=words,
            commands=_with_inner_commands(words, self.file),
            gpus=self._gpus(node.node_at("resourcesPerNode"), "spec.trainer.resourcesPerNode"),
            origin=self.origin_of(node, "spec.trainer"),
        )

    def multiply_replicas(self, role: Role, factor: Node | None) -> Role:
        """Return the role with its pods multiplied by the replicas of its job."""
        value = self.value_of(factor, f"{role.name}.replicas")
        if value is None or value.integer is None or role.replicas.integer is None:
            return role
        total = value.integer * role.replicas.integer
        base = value if value.integer != 1 else role.replicas
        return msgspec.structs.replace(role, replicas=Value(str(total), base.origin))

    def _env(self, node: Node | None) -> tuple[dict[str, Value], tuple[str, ...]]:
        variables: dict[str, Value] = {}
        computed: list[str] = []
        for entry in node.elements if node is not None else ():
            name = entry.text_at("name")
            value_node = entry.node_at("value")
            if not name:
                continue
            if value_node is None or value_node.kind in ("map", "list", "null"):
                computed.append(name)
                continue
            if value_node.kind != "string":
                self._no_string(f"the value of {name}", value_node, "value: ", name)
            is_filled_in = self.is_template and _PLACEHOLDER.search(value_node.text) is not None
            if "$(" in value_node.text or is_filled_in:
                computed.append(name)
                continue
            variables[name] = Value(value_node.text, self.origin_of(value_node, "", name))
        return variables, tuple(computed)

    def _no_string(self, subject: str, node: Node, prefix: str, variable: str = "") -> None:
        self.problems.append(
            Problem(
                kind="manifest.env",
                message=f"{subject} is a {node.kind}; Kubernetes accepts only strings here",
                observed=prefix + node.text,
                correction=f'{prefix}"{node.text}"',
                origin=self.origin_of(node, "", variable),
            )
        )

    def _ports(self, node: Node | None) -> tuple[Value, ...]:
        port_nodes = node.elements if node is not None else []
        values = (
            self.value_of(p.node_at("containerPort"), "ports.containerPort") for p in port_nodes
        )
        return tuple(v for v in values if v is not None)

    def _gpus(self, resources: Node | None, key: str) -> Value | None:
        """Return the GPUs of a container; Kubernetes wants limits for them, and takes the requests from
        these."""
        for name in _GPU_RESOURCES if resources is not None else ():
            node = resources.node_at("limits", name) if resources is not None else None
            value = self.value_of(node, f"{key}.limits.{name}")
            if value is not None:
                return value
        return None

    def _ready_port(self, container: Node) -> Value | None:
        """Return the probe's port by number, also where the probe gives the name of one of the container's
        ports."""
        probe_port = container.node_at("readinessProbe", "tcpSocket", "port")
        ports_node = container.node_at("ports")
        for port in (
            ports_node.elements if probe_port is not None and ports_node is not None else ()
        ):
            if probe_port is not None and port.text_at("name") == probe_port.text:
                number = port.text_at("containerPort")
                return Value(number, self.origin_of(probe_port, "readinessProbe.tcpSocket.port"))
        return self.value_of(probe_port, "readinessProbe.tcpSocket.port")

    def _ready_command(self, container: Node) -> tuple[Value, ...]:
        command_node = container.node_at("readinessProbe", "exec", "command")
        words = command_node.elements if command_node is not None else []
        values = (self.value_of(w, "readinessProbe.exec.command") for w in words)
        return tuple(v for v in values if v is not None)

    def _words(self, container: Node, env: Mapping[str, Value]) -> tuple[Value, ...]:
        """Return command and arguments; ``$(NAME)`` is replaced by the container's own variable where it is
        known."""
        words: list[Value] = []
        for field in ("command", "args"):
            node = container.node_at(field)
            for element in node.elements if node is not None else ():
                word = self.value_of(element, field)
                if word is not None and element.kind != "string":
                    self._no_string(f"{field} has {element.text}, which", element, "- ")
                if word is not None:
                    if self.is_template:
                        word = Value(_PLACEHOLDER.sub(OPAQUE, word.text), word.origin)
                    words.append(_expand_references(word, env))
        return tuple(words)


def is_envsubst_template(document: Node) -> bool:
    """Return True if a variable stands where only a tool such as envsubst can fill it in."""
    visited: set[int] = set()
    open_nodes = [document]
    while open_nodes:
        node = open_nodes.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        for key, item in node.items.items():
            if key in _FILLED_IN_FIELDS and _PLACEHOLDER.search(item.text):
                return True
        open_nodes += [*node.items.values(), *node.elements]
    return False


def _expand_references(word: Value, env: Mapping[str, Value]) -> Value:
    """Return the word as Kubernetes expands it (the page "Define a Command and Arguments").

    ``$(NAME)`` is a variable, and ``$$`` stands for a ``$`` that is meant for the shell.
    """
    texts: list[str] = []
    parts: list[Part] = []
    copied_up_to, text_position, source_position = 0, (1, 1), (1, 1)
    for match in (*_REFERENCE.finditer(word.text), None):
        literal = word.text[copied_up_to : match.start() if match else len(word.text)]
        parts.append(Part(*text_position, *source_position))
        text_position, source_position = (
            position_after(literal, *text_position),
            position_after(literal, *source_position),
        )
        texts.append(literal)
        if match is None:
            break
        variable_text = env[match[1]].text if match[1] in env else OPAQUE
        expansion = match[0][1:] if match[0].startswith("$$") else variable_text
        parts.append(Part(*text_position, *source_position, literal=False))
        text_position, source_position = (
            position_after(expansion, *text_position),
            position_after(match[0], *source_position),
        )
        texts.append(expansion)
        copied_up_to = match.end()
    if len(parts) == 1:
        return word
    # Before the join: the pieces share the text of a variable, the joined text repeats it.
    if sum(map(len, texts)) > MAX_EXPANDED_LENGTH:
        return Value(OPAQUE, word.origin)
    origin = word.origin.around(
        msgspec.structs.replace(word.origin, line=1, column=1, parts=tuple(parts))
    )
    return Value("".join(texts), origin)


def _with_inner_commands(words: tuple[Value, ...], file: str) -> tuple[tuple[Value, ...], ...]:
    """Return the container's command, and the commands of the shell scripts that are words of it."""
    commands = [words] if words else []
    for word in words:
        if re.search(r"\s", word.text.strip()):
            commands += read_inner_commands(word, file)
    return tuple(commands)
