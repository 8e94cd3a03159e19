"""The parts of a pod template that decide how its pods find each other."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from allaboard.facts import OPAQUE, Node, Origin, Part, Problem, Role, Value
from allaboard.formats.shell.script import inner_commands
from allaboard.formats.source_map import position_after

_TRAINING = ("tensorflow", "pytorch", "mpi", "trainer", "node")
"""Names under which operators look for the training container; else it is the first one."""

_LONGEST = 2**20
"""Characters of a text that is put together of a container's variables."""
_EXPANDED = re.compile(r"\$?\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


class PodTemplateReader:
    """Reads one file's documents; what is wrong in them gathers in ``problems``."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

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
        """A scalar as a value; None where there is none."""
        if node is None or node.kind in ("map", "list", "null"):
            return None
        return Value(node.text, self.origin_of(node, key))

    def read_role(self, name: str, counted: Node, template: Node | None) -> Role:
        """One group of pods; ``counted`` has replicas or parallelism, 1 where it has neither."""
        prefix = f"{name}." if name else ""
        replicas = self.value_of(counted.at("replicas"), prefix + "replicas") or self.value_of(
            counted.at("parallelism"), prefix + "parallelism"
        )
        if replicas is None:
            replicas = Value("1", self.origin_of(counted, prefix + "replicas (default)"))
        pod = template.at("spec") if template is not None else None
        if pod is None or template is None:
            return Role(name=name, replicas=replicas, origin=self.origin_of(counted, name))
        containers = pod.at("containers")
        listed = containers.elements if containers is not None else []
        training = next((c for c in listed if c.text_at("name") in _TRAINING), None)
        main = training or (listed[0] if listed else Node("map", pod.line, pod.column))
        env, computed = self._env(main.at("env"))
        words = self._words(main, env)
        labels = template.at("metadata", "labels")
        names = (self.value_of(c.at("name"), "containers.name") for c in listed)
        return Role(
            name=name,
            replicas=replicas,
            ports=self._ports(main.at("ports")),
            env=env,
            computed=computed,
            command=words,
            commands=_inside(words, self.file),
            labels={k: n.text for k, n in labels.items.items()} if labels is not None else {},
            subdomain=self.value_of(pod.at("subdomain"), "subdomain"),
            fixed=self.value_of(pod.at("hostname"), "hostname"),
            host_network=pod.text_at("hostNetwork") == "true",
            containers=tuple(n for n in names if n is not None),
            ready_port=self._ready_port(main),
            ready_command=self._ready_command(main),
            origin=self.origin_of(pod, name),
        )

    def read_trainer(self, node: Node) -> Role:
        """A TrainJob's trainer section, which has a container's fields at its top."""
        replicas = self.value_of(node.at("numNodes"), "spec.trainer.numNodes")
        env, computed = self._env(node.at("env"))
        words = self._words(node, env)
        return Role(
            name="node",
            replicas=replicas
            or Value("1", self.origin_of(node, "spec.trainer.numNodes (default)")),
            env=env,
            computed=computed,
            command=words,
            commands=_inside(words, self.file),
            origin=self.origin_of(node, "spec.trainer"),
        )

    def multiply_replicas(self, role: Role, factor: Node | None) -> Role:
        """The role with as many pods again for every replica of its job."""
        value = self.value_of(factor, f"{role.name}.replicas")
        if value is None or value.integer is None or role.replicas.integer is None:
            return role
        total = value.integer * role.replicas.integer
        base = value if value.integer != 1 else role.replicas
        return msgspec.structs.replace(role, replicas=Value(str(total), base.origin))

    def _env(self, node: Node | None) -> tuple[dict[str, Value], tuple[str, ...]]:
        found: dict[str, Value] = {}
        computed: list[str] = []
        for entry in node.elements if node is not None else ():
            name = entry.text_at("name")
            given = entry.at("value")
            if not name:
                continue
            if given is None or given.kind in ("map", "list", "null"):
                computed.append(name)
                continue
            if given.kind != "string":
                self._no_string(f"the value of {name}", given, "value: ", name)
            if "$(" in given.text:
                computed.append(name)
                continue
            found[name] = Value(given.text, self.origin_of(given, "", name))
        return found, tuple(computed)

    def _no_string(self, what: str, node: Node, before: str, variable: str = "") -> None:
        self.problems.append(
            Problem(
                kind="manifest.env",
                said=f"{what} is a {node.kind}; Kubernetes accepts only strings here",
                observed=before + node.text,
                correction=f'{before}"{node.text}"',
                origin=self.origin_of(node, "", variable),
            )
        )

    def _ports(self, node: Node | None) -> tuple[Value, ...]:
        listed = node.elements if node is not None else []
        values = (self.value_of(p.at("containerPort"), "ports.containerPort") for p in listed)
        return tuple(v for v in values if v is not None)

    def _ready_port(self, container: Node) -> Value | None:
        """By number, also where the probe gives the name of one of the container's ports."""
        told = container.at("readinessProbe", "tcpSocket", "port")
        listed = container.at("ports")
        for port in listed.elements if told is not None and listed is not None else ():
            if told is not None and port.text_at("name") == told.text:
                number = port.text_at("containerPort")
                return Value(number, self.origin_of(told, "readinessProbe.tcpSocket.port"))
        return self.value_of(told, "readinessProbe.tcpSocket.port")

    def _ready_command(self, container: Node) -> tuple[Value, ...]:
        listed = container.at("readinessProbe", "exec", "command")
        words = listed.elements if listed is not None else []
        found = (self.value_of(w, "readinessProbe.exec.command") for w in words)
        return tuple(v for v in found if v is not None)

    def _words(self, container: Node, env: Mapping[str, Value]) -> tuple[Value, ...]:
        """Command and arguments; ``$(NAME)`` is the container's own variable, as far as it is known."""
        words: list[Value] = []
        for field in ("command", "args"):
            node = container.at(field)
            for element in node.elements if node is not None else ():
                word = self.value_of(element, field)
                if word is not None and element.kind != "string":
                    self._no_string(f"{field} has {element.text}, which", element, "- ")
                if word is not None:
                    words.append(_expanded(word, env))
        return tuple(words)


def _expanded(word: Value, env: Mapping[str, Value]) -> Value:
    """Kubernetes' own expansion (the page "Define a Command and Arguments"): ``$(NAME)``, and ``$$`` for
    one that is meant for the shell."""
    texts: list[str] = []
    parts: list[Part] = []
    last, at, there = 0, (1, 1), (1, 1)
    for match in (*_EXPANDED.finditer(word.text), None):
        literal = word.text[last : match.start() if match else len(word.text)]
        parts.append(Part(*at, *there))
        at, there = position_after(literal, *at), position_after(literal, *there)
        texts.append(literal)
        if match is None:
            break
        named = env[match[1]].text if match[1] in env else OPAQUE
        said = match[0][1:] if match[0].startswith("$$") else named
        parts.append(Part(*at, *there, literal=False))
        at, there = position_after(said, *at), position_after(match[0], *there)
        texts.append(said)
        last = match.end()
    if len(parts) == 1:
        return word
    if sum(map(len, texts)) > _LONGEST:
        return Value(OPAQUE, word.origin)
    whole = word.origin.around(
        msgspec.structs.replace(word.origin, line=1, column=1, parts=tuple(parts))
    )
    return Value("".join(texts), whole)


def _inside(words: tuple[Value, ...], file: str) -> tuple[tuple[Value, ...], ...]:
    """The container's command, and the commands of the shell scripts that are words of it."""
    found = [words] if words else []
    for word in words:
        if re.search(r"\s", word.text.strip()):
            found += inner_commands(word, file)
    return tuple(found)
