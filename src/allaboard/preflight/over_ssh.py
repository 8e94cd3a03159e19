"""`preflight --hosts`: the same preflight on every host, started with the system's own ssh."""

from __future__ import annotations

import argparse
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO

from allaboard.launching.refusal import Refused
from allaboard.meeting.etcd_url import is_etcd
from allaboard.preflight.task import PORT

UNREACHED = 255
"""ssh's exit code where ssh itself failed; ssh(1)."""
SAFE = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=10")
"""Asks for no password, and takes no host whose key is not known."""


def over_ssh(given: argparse.Namespace) -> int:
    """Starts all, passes on what they say, and returns the exit code: 0, 2, 3 or 130."""
    hosts = [h.strip() for h in given.hosts.split(",") if h.strip()]
    _check(hosts)
    job = f"preflight-{secrets.token_hex(4)}"
    sealed = secrets.token_hex(32).encode()
    told = _Told(hosts[0])
    running = [
        subprocess.Popen(
            [*shlex.split(given.ssh), *SAFE, host, remote(given, hosts, rank, job)],
            stdin=subprocess.PIPE,
            stdout=None if rank == 0 else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for rank, host in enumerate(hosts)
    ]
    readers = []
    for host, process in zip(hosts, running, strict=True):
        assert process.stdin is not None and process.stderr is not None
        _hand_over(process.stdin, sealed)
        reader = threading.Thread(target=told.pass_on, args=(host, process.stderr), daemon=True)
        reader.start()
        readers.append(reader)
    try:
        codes = [process.wait() for process in running]
    except KeyboardInterrupt:
        for process in running:
            process.terminate()
        return 130
    for reader in readers:
        reader.join(2.0)
    for host, code in zip(hosts, codes, strict=True):
        if code == UNREACHED:
            said = told.last.get(host, "ssh said nothing")
            sys.stderr.write(
                f"allaboard preflight: no login on {host}: {said}\n"
                f"  do   {given.ssh} -o BatchMode=yes {shlex.quote(host)} true\n"
            )
    if codes[0] == 2:
        return 2
    return 3 if any(codes) else 0


def remote(given: argparse.Namespace, hosts: Sequence[str], rank: int, job: str) -> str:
    """The command for the shell of the host of this rank; ``job`` is the id that all share."""
    first = hosts[0].rpartition("@")[2]
    elsewhere = is_etcd(given.coordinator)
    meeting = f"{first}:{PORT}" if elsewhere else given.coordinator or f"{first}:{PORT}"
    address, _, port = meeting.rpartition(":")
    variables = {
        "RANK": str(rank),
        "WORLD_SIZE": str(len(hosts)),
        "MASTER_ADDR": address.strip("[]"),
        "MASTER_PORT": port,
        "ALLABOARD_JOB_ID": job,
    }
    words = ["env", *(f"{k}={v}" for k, v in variables.items())]
    words += [sys.executable, "-m", "allaboard", "preflight", "--secret-file", "/dev/stdin"]
    words += ["--quick"] if given.quick else []
    words += ["--framework", given.framework or "torch", "--format", given.format]
    words += ["--timeout", f"{given.timeout:g}", "--bound", f"{given.bound:g}"]
    words += ["-v"] if given.verbose else []
    words += ["--coordinator", given.coordinator] if elsewhere else []
    for name in ("cert", "key", "ca"):
        file = getattr(given, f"tls_{name}")
        words += [f"--tls-{name}", str(file)] if file is not None else []
    if given.output is not None and rank == 0:
        words += ["--output", str(given.output.absolute())]
    return f"cd {shlex.quote(os.getcwd())} && exec {shlex.join(words)}"  # noqa: PTH109 - a text


def _check(hosts: Sequence[str]) -> None:
    if shutil.which("ssh") is None:
        raise Refused(
            "no ssh here; start `allaboard preflight` on every host as the job is started"
        )
    if len(hosts) < 2:
        raise Refused("--hosts wants two or more, e.g. --hosts node0,node1")
    twice = {h for h in hosts if hosts.count(h) > 1}
    if twice:
        raise Refused(f"--hosts names {', '.join(sorted(twice))} twice; one task a host is started")
    wrong = [h for h in hosts if h.startswith("-")]
    if wrong:
        raise Refused(f"--hosts {wrong[0]}: that is no host")


def _hand_over(stdin: IO[bytes], sealed: bytes) -> None:
    """The job's secret goes through ssh's own channel: it stands in no command line."""
    try:
        stdin.write(sealed + b"\n")
        stdin.close()
    except OSError:
        pass  # ssh has ended; its exit code says so


class _Told:
    """What the hosts say, each line once: a finding is told on every host in the same words."""

    def __init__(self, first: str) -> None:
        self._first = first
        self._seen: set[str] = set()
        self._lock = threading.Lock()
        self.last: dict[str, str] = {}

    def pass_on(self, host: str, stream: IO[bytes]) -> None:
        for line in stream:
            text = line.decode(errors="replace").rstrip()
            with self._lock:
                self.last[host] = text
                course = text.startswith("allaboard: ") and host != self._first
                if course or text in self._seen:
                    continue
                self._seen.add(text)
                sys.stderr.write(f"[{host}] {text}\n")
                sys.stderr.flush()
