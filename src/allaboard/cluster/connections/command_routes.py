"""Which host a command of the job state is for, and in which message it goes there. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from allaboard.cluster.connections.foreign_events import WORKER_NUMBER_BITS
from allaboard.cluster.transport.wire import LeaderCommands, LinkTestRequest, Message
from allaboard.protocol.commands import (
    Command,
    KillForReplacement,
    ProbeLinks,
    RestartWorker,
    SampleStacks,
    ShowNote,
    TraceCalls,
)
from allaboard.protocol.process_keys import split_process_key


class Route(NamedTuple):
    """Where the parts of a command go."""

    messages: tuple[tuple[int, Message], ...]
    """What is sent to which agent."""
    local_commands: tuple[Command, ...]
    """What is to be done on the leader's own host."""


def route_to_hosts(command: Command, host_of: Callable[[int], str]) -> Route:
    """Return where a command goes that is for certain hosts; ``host_of``: the host of an agent, by its
    number."""
    match command:
        case SampleStacks() | TraceCalls():
            parts = {
                agent: msgspec.structs.replace(command, pids=pids)
                for agent, pids in _pids_by_agent(command.pids).items()
            }
            return Route(
                tuple((agent, _order(part)) for agent, part in parts.items() if agent),
                tuple(part for agent, part in parts.items() if not agent),
            )
        case ProbeLinks() if command.agent:
            return Route(((command.agent, LinkTestRequest(targets=command.targets)),), ())
        case KillForReplacement() if split_process_key(command.pid)[0]:
            agent, pid = split_process_key(command.pid)
            note = f"{command.reason}; ending it so that it can be replaced"
            order = _order(msgspec.structs.replace(command, pid=pid))
            return Route(((agent, order),), (ShowNote(text=note),))
        case RestartWorker() if command.worker >> WORKER_NUMBER_BITS:
            # The agent that started the worker restarts it.
            agent = command.worker >> WORKER_NUMBER_BITS
            worker = command.worker - (agent << WORKER_NUMBER_BITS)
            note = f"{command.reason}: {host_of(agent)} restarts it"
            order = _order(msgspec.structs.replace(command, worker=worker))
            return Route(((agent, order),), (ShowNote(text=note),))
    return Route((), (command,))


def _order(command: Command) -> LeaderCommands:
    return LeaderCommands(commands=(command,))


def _pids_by_agent(process_keys: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    pids_by_agent: dict[int, tuple[int, ...]] = {}
    for agent, pid in map(split_process_key, process_keys):
        pids_by_agent[agent] = (*pids_by_agent.get(agent, ()), pid)
    return pids_by_agent
