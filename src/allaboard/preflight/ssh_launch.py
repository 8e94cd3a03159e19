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

from allaboard.cluster.transport.etcd_url import is_etcd_url
from allaboard.facts import Address
from allaboard.options.usage_error import UsageError
from allaboard.preflight.ssh_hosts import hosts_of, name, one_host
from allaboard.preflight.ssh_output import Said, left_to_say
from allaboard.preflight.ssh_wait import WRONG_USE, end, wait
from allaboard.preflight.task import PORT
from allaboard.preflight.tensorflow_cluster import of_hosts, tf_config

SAFE = ("-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=10")
"""Asks for no password, and takes no host whose key is not known."""


def over_ssh(given: argparse.Namespace) -> int:
    """Starts all, passes on what they say, and returns the exit code: 0, 2, 3 or 130. Raises Refused."""
    hosts = hosts_of(given.hosts)
    if shutil.which("ssh") is None:
        raise UsageError(
            "no ssh here; start `allaboard preflight` on every host as the job is started"
        )
    said = Said(hosts[0])
    running: list[subprocess.Popen[bytes]] = []
    try:
        readers = _start(given, hosts, said, running)
        within = given.timeout + given.bound
        codes = wait(running, lambda: said.heard, lambda: one_host(said.here, hosts), within)
        end(running)
    except KeyboardInterrupt:
        return _interrupted(hosts, running, said)
    for reader in readers:
        reader.join(2.0)
    if same := one_host(said.here, hosts):
        raise UsageError(same)
    if WRONG_USE in codes:
        return WRONG_USE
    for host, code in zip(hosts, codes, strict=True):
        sys.stderr.write(left_to_say(given.ssh, sys.executable, host, code, said))
    return 3 if any(code != 0 for code in codes) else 0


def _start(
    given: argparse.Namespace,
    hosts: Sequence[str],
    said: Said,
    running: list[subprocess.Popen[bytes]],
) -> list[threading.Thread]:
    """All into ``running``; returns who reads what they say. The job's secret goes through ssh's own
    channel: it stands in no command line. That channel stays open, and there the preflight ends with it."""
    job = f"preflight-{secrets.token_hex(4)}"
    sealed = secrets.token_hex(32).encode()
    readers = []
    for rank, host in enumerate(hosts):
        process = subprocess.Popen(
            [*shlex.split(given.ssh), *SAFE, host, remote(given, hosts, rank, job)],
            stdin=subprocess.PIPE,
            stdout=None if rank == 0 else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is ours: it would cut ssh off before the far end is told
        )
        running.append(process)
        assert process.stdin is not None and process.stderr is not None
        try:
            process.stdin.write(sealed + b"\n")
            process.stdin.flush()
        except OSError:
            pass  # ssh has ended; its exit code says so
        reader = threading.Thread(target=said.pass_on, args=(host, process.stderr), daemon=True)
        reader.start()
        readers.append(reader)
    return readers


def _interrupted(
    hosts: Sequence[str], running: Sequence[subprocess.Popen[bytes]], said: Said
) -> int:
    """Ends it everywhere, at once where the user insists."""
    awaited = [h for h, p in zip(hosts, running, strict=False) if p.poll() is None]
    if awaited:
        sys.stderr.write(
            f"allaboard preflight: interrupted; ending it on {', '.join(awaited)}, again: at once\n"
        )
        sys.stderr.flush()
    # Where nothing has started there is nobody to ask.
    reached = [p for h, p in zip(hosts, running, strict=False) if h in said.here]
    try:
        end([p for p in running if p not in reached], 0.0)
        end(reached)
    except KeyboardInterrupt:
        end(running, 0.0)
    return 130


def remote(given: argparse.Namespace, hosts: Sequence[str], rank: int, job: str) -> str:
    """The command for the shell of the host of this rank; ``job`` is the id that all share."""
    elsewhere = is_etcd_url(given.coordinator)
    variables = _variables(hosts, rank, "" if elsewhere else given.coordinator, given.framework)
    variables["ALLABOARD_JOB_ID"] = job
    words = ["env", *(f"{k}={v}" for k, v in variables.items())]
    words += [sys.executable, "-m", "allaboard", "preflight", "--leashed", ",".join(hosts)]
    words += ["--quick"] if given.quick else []
    words += ["--framework", given.framework or "torch", "--format", given.format]
    words += ["--timeout", f"{given.timeout:g}", "--bound", f"{given.bound:g}"]
    words += ["-v"] if given.verbose else []
    words += ["--coordinator", given.coordinator] if elsewhere else []
    for part in ("cert", "key", "ca"):
        file = getattr(given, f"tls_{part}")
        words += [f"--tls-{part}", str(file)] if file is not None else []
    if given.output is not None and rank == 0:
        words += ["--output", str(given.output.absolute())]
    return f"cd {shlex.quote(os.getcwd())} && exec {shlex.join(words)}"  # noqa: PTH109 - a text


def _variables(hosts: Sequence[str], rank: int, meeting: str, framework: str) -> dict[str, str]:
    """What a launcher would set there for a job of this framework."""
    names = [name(h) for h in hosts]
    first = Address.from_endpoint(meeting) if meeting else Address(names[0], str(PORT))
    if framework == "tensorflow":
        return {"TF_CONFIG": tf_config(of_hosts(names, first.number, meeting), "worker", rank)}
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(len(hosts)),
        "MASTER_ADDR": first.host,
        "MASTER_PORT": first.port,
    }
