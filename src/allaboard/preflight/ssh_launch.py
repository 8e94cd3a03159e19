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
from allaboard.preflight.ssh_hosts import host_name, parse_hosts, same_host_message
from allaboard.preflight.ssh_output import HostOutput, failure_message
from allaboard.preflight.ssh_wait import USAGE_ERROR_EXIT_CODE, end_hosts, wait_for_hosts
from allaboard.preflight.task import DEFAULT_MEETING_PORT
from allaboard.preflight.tensorflow_cluster import cluster_of_hosts, format_tf_config

SAFE_SSH_OPTIONS = (
    "-o",
    "BatchMode=yes",
    "-o",
    "StrictHostKeyChecking=yes",
    "-o",
    "ConnectTimeout=10",
)
"""ssh asks for no password, and connects to no host whose key is unknown."""


def run_over_ssh(options: argparse.Namespace) -> int:
    """Start the preflight on all hosts, pass on their output, and return the exit code: 0, 2, 3 or 130.

    Raises:
        UsageError: the hosts are no usable list, or there is no ssh.
    """
    hosts = parse_hosts(options.hosts)
    if shutil.which("ssh") is None:
        raise UsageError(
            "ssh is not installed here; start `allaboard preflight` on every host as the job is started"
        )
    output = HostOutput(hosts[0])
    processes: list[subprocess.Popen[bytes]] = []
    try:
        readers = _start_hosts(options, hosts, output, processes)
        limit_s = options.timeout + options.bound
        exit_codes = wait_for_hosts(
            processes,
            lambda: output.heard_at,
            lambda: same_host_message(output.identities, hosts),
            limit_s,
        )
        end_hosts(processes)
    except KeyboardInterrupt:
        return _end_interrupted(hosts, processes, output)
    for reader in readers:
        reader.join(2.0)
    if message := same_host_message(output.identities, hosts):
        raise UsageError(message)
    if USAGE_ERROR_EXIT_CODE in exit_codes:
        return USAGE_ERROR_EXIT_CODE
    for host, exit_code in zip(hosts, exit_codes, strict=True):
        sys.stderr.write(failure_message(options.ssh, sys.executable, host, exit_code, output))
    return 3 if any(exit_code != 0 for exit_code in exit_codes) else 0


def _start_hosts(
    options: argparse.Namespace,
    hosts: Sequence[str],
    output: HostOutput,
    processes: list[subprocess.Popen[bytes]],
) -> list[threading.Thread]:
    """Start ssh for each host, append the processes to ``processes``, and return the threads that read
    their output.

    The job's secret goes through ssh's standard input, so it stands in no command line. That channel stays
    open: the preflight on the other host ends when it closes.
    """
    job_id = f"preflight-{secrets.token_hex(4)}"
    secret = secrets.token_hex(32).encode()
    readers = []
    for rank, host in enumerate(hosts):
        process = subprocess.Popen(
            [
                *shlex.split(options.ssh),
                *SAFE_SSH_OPTIONS,
                host,
                remote_command(options, hosts, rank, job_id),
            ],
            stdin=subprocess.PIPE,
            stdout=None if rank == 0 else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C would end ssh before the other host is asked to end
        )
        processes.append(process)
        assert process.stdin is not None and process.stderr is not None
        try:
            process.stdin.write(secret + b"\n")
            process.stdin.flush()
        except OSError:
            pass  # ssh has ended; its exit code says so
        reader = threading.Thread(target=output.pass_on, args=(host, process.stderr), daemon=True)
        reader.start()
        readers.append(reader)
    return readers


def _end_interrupted(
    hosts: Sequence[str], processes: Sequence[subprocess.Popen[bytes]], output: HostOutput
) -> int:
    """End the preflight on all hosts after Ctrl-C, at once after a second Ctrl-C, and return 130."""
    running_hosts = [h for h, p in zip(hosts, processes, strict=False) if p.poll() is None]
    if running_hosts:
        sys.stderr.write(
            f"allaboard preflight: interrupted; ending it on {', '.join(running_hosts)}; "
            "press Ctrl-C again to end it now\n"
        )
        sys.stderr.flush()
    # A preflight that has not started cannot be asked to end.
    reached_processes = [
        p for h, p in zip(hosts, processes, strict=False) if h in output.identities
    ]
    try:
        end_hosts([p for p in processes if p not in reached_processes], 0.0)
        end_hosts(reached_processes)
    except KeyboardInterrupt:
        end_hosts(processes, 0.0)
    return 130


def remote_command(
    options: argparse.Namespace, hosts: Sequence[str], rank: int, job_id: str
) -> str:
    """Return the command for the shell of the host with this rank. ``job_id`` is the id that all hosts
    share."""
    in_etcd = is_etcd_url(options.coordinator)
    variables = _launcher_variables(
        hosts, rank, "" if in_etcd else options.coordinator, options.framework
    )
    variables["ALLABOARD_JOB_ID"] = job_id
    arguments = ["env", *(f"{k}={v}" for k, v in variables.items())]
    arguments += [sys.executable, "-m", "allaboard", "preflight", "--leashed", ",".join(hosts)]
    arguments += ["--quick"] if options.quick else []
    arguments += ["--framework", options.framework or "torch", "--format", options.format]
    arguments += ["--timeout", f"{options.timeout:g}", "--bound", f"{options.bound:g}"]
    arguments += ["-v"] if options.verbose else []
    arguments += ["--coordinator", options.coordinator] if in_etcd else []
    for name in ("cert", "key", "ca"):
        file = getattr(options, f"tls_{name}")
        arguments += [f"--tls-{name}", str(file)] if file is not None else []
    if options.output is not None and rank == 0:
        arguments += ["--output", str(options.output.absolute())]
    return f"cd {shlex.quote(os.getcwd())} && exec {shlex.join(arguments)}"  # noqa: PTH109 - a text


def _launcher_variables(
    hosts: Sequence[str], rank: int, meeting_address: str, framework: str
) -> dict[str, str]:
    """Return the variables that a launcher would set on that host for a job of this framework."""
    names = [host_name(h) for h in hosts]
    first_host = (
        Address.from_endpoint(meeting_address)
        if meeting_address
        else Address(names[0], str(DEFAULT_MEETING_PORT))
    )
    if framework == "tensorflow":
        return {
            "TF_CONFIG": format_tf_config(
                cluster_of_hosts(names, first_host.number, meeting_address), "worker", rank
            )
        }
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(len(hosts)),
        "MASTER_ADDR": first_host.host,
        "MASTER_PORT": first_host.port,
    }
