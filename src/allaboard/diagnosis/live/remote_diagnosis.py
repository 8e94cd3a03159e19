"""Inspection of processes on other hosts, through the system's ssh client and allaboard on those hosts."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence

import msgspec

from allaboard.facts import HostLook

HOST_TIMEOUT_S = 60.0
"""Seconds for one host: the login, five samples, the answer."""
MAX_LOGINS = 32
"""Logins at the same time: one sshd or one key agent takes this many without refusing."""
COMMAND_NOT_FOUND = 127
"""Exit code of a shell that has no such command."""
SSH_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
"""Options that make ssh never ask for a password: nobody may be there to type it."""


def inspect_hosts(
    targets_by_host: Mapping[str, Sequence[str]], ssh: str, program: str
) -> tuple[HostLook, ...]:
    """Return the answer of each host, in order; a host that cannot be asked has its ``trouble``.

    Args:
        targets_by_host: pids or words, as for `process_inspection.choose_processes`, by the host as ssh(1)
    takes it.
        ssh: the client and its options, as a shell would split it.
        program: the command that starts allaboard on those hosts.
    """

    async def all_of_them() -> tuple[HostLook, ...]:
        login_slots = asyncio.Semaphore(MAX_LOGINS)

        async def one(host: str, targets: Sequence[str]) -> HostLook:
            async with login_slots:
                return await _inspect_host(host, targets, shlex.split(ssh), program)

        return tuple(await asyncio.gather(*(one(h, t) for h, t in targets_by_host.items())))

    return asyncio.run(all_of_them())


async def _inspect_host(
    host: str, targets: Sequence[str], ssh: list[str], program: str
) -> HostLook:
    remote_command = f"{program} diagnose --look {shlex.join(['--', *targets])}"
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *ssh,
            *SSH_OPTIONS,
            # A host that begins with a dash would be an option, and ssh has some that run programs.
            "--",
            host,
            remote_command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
        )
    except OSError as error:
        return HostLook(host=host, trouble=f"{ssh[0]}: {(error.strerror or '').lower()}")
    try:
        output, errors = await asyncio.wait_for(process.communicate(), HOST_TIMEOUT_S)
    except TimeoutError:
        process.kill()
        await process.wait()
        return HostLook(host=host, trouble=f"no answer in {HOST_TIMEOUT_S:g} s: ssh {host} true")
    return _read_answer(
        host, output, errors.decode("utf-8", "replace"), process.returncode or 0, program
    )


def _read_answer(host: str, output: bytes, errors: str, code: int, program: str) -> HostLook:
    try:
        return msgspec.json.decode(output, type=HostLook)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    if code == COMMAND_NOT_FOUND or "No module named allaboard" in errors:
        trouble = f"`{program}` does not start allaboard there; give the command: --remote 'PATH/allaboard'"
    elif code == 0:
        trouble = "another version of allaboard answered; install this version there"
    else:
        trouble = lines[-1].removeprefix("allaboard diagnose: ") if lines else f"exit code {code}"
    return HostLook(host=host, trouble=trouble[:300])
