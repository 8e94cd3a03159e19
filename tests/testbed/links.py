"""The cables between the hosts and the switch."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from testbed.module_command import module_command
from testbed.requirements import program

BURST = "32kbit"


@dataclass(frozen=True)
class End:
    """A host's end of its cable: the first process of the host, its number, its address."""

    first: int
    number: int
    address: str

    @property
    def port(self) -> str:
        """The switch's device for this host."""
        return f"port{self.number}"

    @property
    def hardware(self) -> str:
        """The same after a change of cable, so that no neighbour's cache is stale."""
        return f"02:00:00:00:{self.number >> 8:02x}:{self.number & 255:02x}"

    def plugged(self) -> str:
        """The `ip` commands of the host once its eth0 is there."""
        return (
            "link set lo up\n"
            f"link set eth0 address {self.hardware} addrgenmode none\n"
            f"address add {self.address}/16 dev eth0\n"
            "link set eth0 up\n"
        )


def inside(first: int, words: list[str], text: str = "") -> None:
    """Runs a program in that host's network alone. Raises OSError with what it said."""
    _done(_begun(first, words), words, text)


def _begun(first: int, words: list[str]) -> subprocess.Popen[str]:
    command = [program("nsenter"), "--target", str(first), "--net", program(words[0]), *words[1:]]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True)


def _done(process: subprocess.Popen[str], words: list[str], text: str = "") -> None:
    said, _ = process.communicate(text)
    if process.returncode:
        raise OSError(f"{' '.join(words)}: {said.strip()}")


def plug(switch: int, ends: list[End]) -> None:
    """A bridge, where there is none yet, and a cable to each host."""
    lines = ["link set lo up"]
    for end in ends:
        lines.append(f"link add {end.port} type veth peer name eth0 netns {end.first}")
        lines.append(f"link set {end.port} master bridge up")
    inside(switch, ["ip", "-batch", "-"], "\n".join(lines) + "\n")
    batch = ["ip", "-batch", "-"]
    begun = [_begun(end.first, batch) for end in ends]  # side by side: a process each takes time
    for process, end in zip(begun, ends, strict=True):
        _done(process, batch, end.plugged())


def bridge(switch: int) -> None:
    """The switch itself."""
    inside(switch, ["ip", "-batch", "-"], "link add bridge type bridge\nlink set bridge up\n")


def unplug(switch: int, end: End) -> None:
    """Takes the host's cable away; its eth0 is gone."""
    inside(switch, ["ip", "link", "delete", end.port])


def carrier(switch: int, end: End, up: bool) -> None:
    """The cable drawn at the switch, or put in again."""
    inside(switch, ["ip", "link", "set", end.port, "up" if up else "down"])


def narrow(switch: int, end: End, megabits: float) -> None:
    """So many megabits a second, each way."""
    shape = ["root", "tbf", "rate", f"{megabits}mbit", "burst", BURST, "latency", "400ms"]
    inside(switch, ["tc", "qdisc", "replace", "dev", end.port, *shape])
    inside(end.first, ["tc", "qdisc", "replace", "dev", "eth0", *shape])


def wire(switch: int, end: End, delay: float, loss: float) -> subprocess.Popen[bytes]:
    """The host's cable goes through user space; unplug it before. Raises OSError where it cannot be.

    The wire is of the switch's process table, so that it ends with the switch.
    """
    command = [program("nsenter"), "--target", str(switch), "--net", "--pid"]
    command += [*module_command("testbed.wire"), f"/proc/{end.first}/ns/net", end.port]
    process = subprocess.Popen(
        [*command, str(delay), str(loss)], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    with process.stdout as pipe:
        if pipe.readline() != b"up\n":
            process.wait()
            raise OSError("the wire did not come up: no TAP devices here?")
    inside(switch, ["ip", "link", "set", end.port, "master", "bridge", "up"])
    inside(end.first, ["ip", "-batch", "-"], end.plugged())
    return process


def forget(ends: Iterable[End]) -> None:
    """Every host looks anew for who has which address; else it may believe for seconds that a host
    whose cable was changed is not there."""
    words = ["ip", "neighbour", "flush", "dev", "eth0"]
    for process in [_begun(end.first, words) for end in ends]:
        _done(process, words)


def cut(process: subprocess.Popen[bytes]) -> None:
    """Ends a wire; both devices go with it."""
    for pid in _children(process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait()


def _children(pid: int) -> list[int]:
    try:
        return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
