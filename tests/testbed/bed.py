"""The bed: makes the hosts, runs commands on them, and does to their network what a drill asks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from testbed import dns, firewall, links
from testbed.errors import CannotMake, CommandFailed
from testbed.firewall import Block
from testbed.hosts_file import oldest
from testbed.module_command import module_command
from testbed.process import Process
from testbed.requirements import missing
from testbed.start_order import Order

PREFIX = "allaboard-bed-"
NETWORK = "10.77"
UP_FOR = 100_000.0
"""Each host has been up so many seconds longer than the one before it: their monotonic clocks differ,
as those of real hosts do."""


class Bed:
    """Hosts h0, h1, … on one machine, on one switch, as a context manager.

    A host is its own network (eth0, 10.77.x.y/16), name, process table, /proc, /dev/shm, /run and
    monotonic clock; the rest of the file system is the machine's. It ends with the ``with``, with
    this process, or after ``lifetime`` seconds, whatever comes first.

    Attributes:
        hosts: the hosts' names.
        addresses: name to address.
        folder: for output, seen by all hosts; gone with the bed.
    """

    def __init__(self, hosts: int = 4, *, lifetime: float = 600.0) -> None:
        self.hosts = tuple(f"h{i}" for i in range(hosts))
        self.addresses = {
            h: f"{NETWORK}.{i >> 8}.{(i & 255) + 1}" for i, h in enumerate(self.hosts)
        }
        self.folder = Path()
        self._lifetime = lifetime
        self._keeper: subprocess.Popen[str] | None = None
        self._switch = 0
        self._ends: dict[str, links.End] = {}
        self._names: dict[str, dict[str, str | None]] = {h: {} for h in self.hosts}
        self._wires: dict[str, subprocess.Popen[bytes]] = {}
        self._processes: list[Process] = []

    def __enter__(self) -> Bed:
        if why := missing():
            raise CannotMake(why)
        _sweep()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        try:
            self._make()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _make(self) -> None:
        order = Order(
            names=list(self.hosts),
            hosts_file=dns.hosts_file(self.addresses),
            uptimes=[UP_FOR * i for i in range(len(self.hosts))],
            lifetime=self._lifetime,
            owner=os.getpid(),
            folder=str(self.folder),
        )
        self._keeper = subprocess.Popen(
            [*module_command("testbed.namespace_init"), order.text()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._keeper.stdout is not None
        answer = json.loads(self._keeper.stdout.readline() or '{"error": "the keeper died"}')
        if "error" in answer:
            raise CannotMake(answer["error"])
        self._switch, *firsts = answer["pids"]
        for i, (host, first) in enumerate(zip(self.hosts, firsts, strict=True)):
            self._ends[host] = links.End(first, i + 1, self.addresses[host])
        links.bridge(self._switch)
        links.plug(self._switch, list(self._ends.values()))

    def close(self) -> None:
        """Ends every process and takes everything away; a second time it does nothing."""
        if self._keeper is not None:
            assert self._keeper.stdin is not None and self._keeper.stdout is not None
            self._keeper.stdin.close()
            try:
                self._keeper.wait(20)
            except subprocess.TimeoutExpired:
                self._keeper.kill()  # the kernel ends the hosts with it
                self._keeper.wait()
            self._keeper.stdout.close()
            self._keeper = None
        for process in self._processes:
            process.last()
        for wire in self._wires.values():
            wire.wait()
        self._processes.clear()
        self._wires.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    # Commands

    def start(
        self,
        host: str,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        folder: Path | None = None,
    ) -> Process:
        """Starts a command on a host, in ``folder`` (here), with this environment (ours)."""
        output = self.folder / f"{host}-{len(self._processes)}.out"
        process = Process(self.first(host), command, output, environment, folder or Path.cwd())
        self._processes.append(process)
        return process

    def run(self, host: str, *command: str, timeout: float = 30.0) -> str:
        """What a short command on a host writes. Raises CommandFailed with it."""
        process = self.start(host, command)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        if code:
            raise CommandFailed(f"{host}: {' '.join(command)}: exit code {code}\n{process.text()}")
        return process.text()

    def signal(self, host: str, number: int, pattern: str) -> None:
        """Sends a signal to the first process of a host whose command this pattern (re) matches from its
        beginning. Raises CommandFailed where there is none."""
        pid = oldest(self.path(host, "/proc"), pattern)
        if pid is None:
            raise CommandFailed(f"{host}: no process is like {pattern}")
        self.run(host, "kill", f"-{int(number)}", str(pid))

    def first(self, host: str) -> int:
        """The pid of a host's first process, as this machine sees it."""
        return self._ends[host].first

    def path(self, host: str, path: str) -> Path:
        """A path of a host's own file system, e.g. its /dev/shm, as this machine sees it."""
        return Path(f"/proc/{self.first(host)}/root") / path.lstrip("/")

    # What is done to them

    def block(self, host: str, block: Block) -> None:
        """Adds a block to the host's firewall."""
        address = self.addresses[block.peer] if block.peer else ""
        links.inside(self.first(host), ["nft", "-f", "-"], firewall.script(block, address))

    def unblock(self, host: str) -> None:
        """Opens the host's firewall again."""
        links.inside(self.first(host), ["nft", "-f", "-"], firewall.CLEAR)

    def name(self, host: str, name: str, address: str | None) -> None:
        """What this host thinks of a name: another address, or (None) nothing at all."""
        self._names[host][name] = address
        text = dns.hosts_file(self.addresses, self._names[host])
        self.path(host, "/run/bed/hosts").write_text(text)

    def unplug(self, host: str) -> None:
        """Draws the host's cable."""
        links.carrier(self._switch, self._ends[host], False)

    def plug(self, host: str) -> None:
        """Puts the cable in again."""
        links.carrier(self._switch, self._ends[host], True)

    def narrow(self, host: str, megabits: float) -> None:
        """Leaves the host so many megabits a second, each way."""
        links.narrow(self._switch, self._ends[host], megabits)

    def wire(self, host: str, *, delay: float = 0.0, loss: float = 0.0) -> None:
        """Puts a cable in with this delay (s) and loss (a share of packets), each way."""
        self._cut(host)
        self._wires[host] = links.wire(self._switch, self._ends[host], delay, loss)
        links.forget(self._ends.values())

    def heal(self) -> None:
        """Undoes all that was done to firewalls, names and cables; what runs goes on."""
        for host, end in self._ends.items():
            self.unblock(host)
            self._names[host].clear()
            self.path(host, "/run/bed/hosts").write_text(dns.hosts_file(self.addresses))
            self._cut(host)
            links.plug(self._switch, [end])
        links.forget(self._ends.values())

    def cover(self, host: str, path: str, *, read_only: bool = False) -> None:
        """Gives a host its own, empty folder where the others see a shared one; or a read-only view."""
        words = (
            ["mount", "--bind", path, path] if read_only else ["mount", "-t", "tmpfs", "bed", path]
        )
        self.run(host, *words)
        if read_only:
            self.run(host, "mount", "-o", "remount,bind,ro", path)

    def _cut(self, host: str) -> None:
        wire = self._wires.pop(host, None)
        if wire is None:
            links.unplug(self._switch, self._ends[host])
        else:
            links.cut(wire)


def _sweep() -> None:
    """Folders of beds that died with their keepers; all else of them is gone by itself."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(folder, ignore_errors=True)
