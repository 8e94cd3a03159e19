"""What a bed needs of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

PROGRAMS = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nft": "nftables",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "env": "coreutils",
}
FURTHER = {
    "slurmctld": "slurm-wlm",
    "slurmd": "slurm-wlm",
    "munged": "munge",
    "mpirun": "openmpi-bin",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "etcd": "etcd-server",
}
FAKE_CLOCK = "faketime/libfaketime.so.1"
_WHERE = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"


@cache
def program(name: str) -> str:
    """The path of a program, also where PATH leaves out the folders of the system's own.

    Raises FileNotFoundError with the package that has it.
    """
    found = shutil.which(name, path=_WHERE)
    if found is None:
        package = {**PROGRAMS, **FURTHER}.get(name, name)
        raise FileNotFoundError(f"no {name}: apt-get install {package}")
    return found


def fake_clock() -> Path | None:
    """The library that gives a process another wall clock (Debian: faketime)."""
    return next(iter(sorted(Path("/usr/lib").glob(f"*/{FAKE_CLOCK}"))), None)


@cache
def other_python() -> Path | None:
    """Another minor version of Python on this machine, 3.9 or newer."""
    found = [shutil.which(f"python3.{minor}") for minor in range(9, 16)]
    found += map(str, Path.home().glob(".pyenv/versions/3.*/bin/python3.*[0-9]"))
    ask = "import sys; print(sys.version_info[1], sys.executable)"
    for each in filter(None, found):
        words = [each, "-I", "-S", "-c", ask]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        minor, _, path = done.stdout.strip().partition(" ")
        if done.returncode == 0 and int(minor) >= 9 and int(minor) != sys.version_info.minor:
            return Path(path)
    return None


def missing(*further: str) -> str:
    """Why a bed cannot be made here, and what would help; "" where it can.

    ``further`` parts: "clock" (another wall clock on a host), "wire" (delay and loss), "python" (another
    minor version), or the name of a program.
    """
    if why := _bed():
        return why
    for part in further:
        if part == "clock":
            if fake_clock() is None:
                return "no libfaketime: apt-get install faketime"
        elif part == "python":
            if other_python() is None:
                return "no second Python from 3.9 on"
        elif part == "wire":
            if not Path("/dev/net/tun").exists():
                return "no /dev/net/tun: this kernel has no TAP devices"
        else:
            try:
                program(part)
            except FileNotFoundError as error:
                return str(error)
    return ""


@cache
def _bed() -> str:
    if not sys.platform.startswith("linux"):
        return "needs Linux"
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    try:
        for name in PROGRAMS:
            program(name)
    except FileNotFoundError as error:
        return str(error)
    kinds = ("--net", "--uts", "--mount", "--ipc", "--pid", "--time", "--fork")
    words = [program("unshare"), *kinds, program("nft"), "add", "table", "inet", "bed"]
    tried = subprocess.run(words, capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"this kernel or container gives no namespaces: {tried.stderr.strip()[:200]}"
    return ""
