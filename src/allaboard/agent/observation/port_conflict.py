"""Finds the process that holds a port which a member failed to bind."""

from __future__ import annotations

import os
from collections.abc import Iterable

from allaboard.analysis.failures.port_in_use import find_taken_port
from allaboard.facts import Holder
from allaboard.hosts.interface_address import port_holder
from allaboard.protocol.events import Event, PortChecked, ProcessSampled


class PortConflicts:
    """Asks the kernel once for each member that failed to bind a port."""

    def __init__(self) -> None:
        self._checked_pids: set[int] = set()

    def find_holders(self, now: float, events: Iterable[Event]) -> list[Event]:
        """Return a `PortChecked` for each new failure; without a pid if the holder belongs to another
        user."""
        holders: list[Event] = []
        for event in events:
            if (
                not isinstance(event, ProcessSampled)
                or event.box is None
                or event.pid in self._checked_pids
            ):
                continue
            port = find_taken_port(event.box.raised, event.box.declared)
            if port:
                self._checked_pids.add(event.pid)
                pid, command = port_holder(port)
                address = f"{os.uname().nodename}:{port}"
                holders.append(
                    PortChecked(
                        holder=Holder(address=address, pid=pid, command=command, looked_at=now)
                    )
                )
        return holders
