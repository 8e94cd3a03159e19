"""Containers that `docker run` starts, and that look for each other by name on the default network.

Docker resolves the names of containers on networks that a user made, and not on the default bridge
(docs.docker.com, Bridge network driver, "Differences between user-defined bridges and the default bridge").
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from allaboard.configuration.spec.launch_problem import launch_problem
from allaboard.facts import Material, Problem, Value
from allaboard.facts.address import parse_address

_PROGRAMS = ("docker", "podman", "nvidia-docker")
_MEETING_VARIABLES = (
    "MASTER_ADDR",
    "JAX_COORDINATOR_ADDRESS",
    "PET_RDZV_ENDPOINT",
    "PET_MASTER_ADDR",
)


class _Container(msgspec.Struct):
    """One `docker run`."""

    name: str = ""
    has_network: bool = False
    """True if an option names a network, adds a name to /etc/hosts or links containers."""
    meeting: Value | None = None
    """The address that it is told to meet at; with the position of its word."""
    variable: str = ""


def docker_problems(material: Material) -> Iterator[Problem]:
    """Yield a problem for the first container that is to find another one by its name, and cannot."""
    containers = [c for c in map(_read, material.commands) if c is not None]
    names = {c.name for c in containers if c.name}
    for container in containers:
        if container.meeting is None or container.has_network:
            continue
        host = parse_address(container.meeting.text).host
        if host not in names or host == container.name:
            continue
        yield launch_problem(
            container.meeting,
            message=f"{container.variable} is {container.meeting.text}, the name of another container: on "
            "docker's default network containers do not know each other's names",
            correction="docker network create train   # and --network train in every docker run",
            observed=f"-e {container.variable}={container.meeting.text}, no --network",
        )
        return


def _read(command: Sequence[Value]) -> _Container | None:
    texts = [w.text for w in command]
    if texts[:1] == ["sudo"]:
        command, texts = command[1:], texts[1:]
    if len(texts) < 3 or texts[0].rpartition("/")[2] not in _PROGRAMS or texts[1] != "run":
        return None
    container = _Container()
    for position, argument in enumerate(command[2:], 2):
        flag, equals, attached = argument.text.partition("=")
        following = command[position + 1] if position + 1 < len(command) else Value("")
        if flag == "--name":
            container.name = attached if equals else following.text
        elif flag in ("--network", "--net", "--link", "--add-host", "--env-file"):
            container.has_network = True
        elif flag in ("-e", "--env"):
            value = Value(attached, argument.origin) if equals and flag == "--env" else following
            variable, has_value, text = value.text.partition("=")
            if variable in _MEETING_VARIABLES and has_value:
                container.meeting, container.variable = Value(text, value.origin), variable
    return container
