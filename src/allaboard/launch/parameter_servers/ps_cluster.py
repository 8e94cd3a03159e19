"""The tasks of a cluster from `--ps P -n W --chief --evaluator`, or what is wrong with these
options."""

from __future__ import annotations

from allaboard.errors import AllaboardError
from allaboard.launch.parameter_servers.script_scan import ScriptRoles

MAX_TASKS = 4096


class InvalidRolesError(AllaboardError, ValueError):
    """The options make no cluster; the message says why and what to type."""


def cluster_tasks(
    ps: str, n: str | None, chief: int, evaluator: int, reading: ScriptRoles, script: str
) -> tuple[tuple[str, int], ...]:
    """Return job name and index of every process, those that train first, an evaluator last.

    ``chief`` and ``evaluator`` count how often they were asked for. Raises InvalidRolesError.
    """
    servers = _count("--ps", ps, script)
    workers = _count("-n", "1" if n is None else n, script)
    if servers == 0:
        needs = reading.needs_servers
        raise InvalidRolesError(
            f"--ps 0: {script} builds on parameter servers ({needs[0]}, line {needs[1]}); "
            f"try: allaboard run --ps 1 -n {workers}{' --chief' if reading.needs_chief else ''} {script}"
            if needs
            else f"--ps 0 leaves no parameter server; for a job without any: "
            f"allaboard run -n {workers} {script}"
        )
    for option, times in (("--chief", chief), ("--evaluator", evaluator)):
        if times > 1:
            raise InvalidRolesError(
                f"{option} given {times} times: a cluster has one {option[2:]} at most; give it once"
            )
    if reading.needs_chief and not chief:
        raise InvalidRolesError(
            f"{script} uses {reading.needs_chief[0]} (line {reading.needs_chief[1]}), whose program "
            f"runs on a chief; try: allaboard run --ps {servers} -n {workers} --chief {script}"
        )
    if reading.collective and not reading.needs_servers:
        raise InvalidRolesError(
            f"{script} is a collective job ({reading.collective[0]}, line {reading.collective[1]}), "
            f"which has no parameter servers; try: allaboard run -n {workers} {script}"
        )
    tasks = [("chief", 0)] if chief else []
    tasks += [("worker", i) for i in range(workers)]
    tasks += [("ps", i) for i in range(servers)]
    tasks += [("evaluator", 0)] if evaluator else []
    return tuple(tasks)


def missing_servers_note(n: str, reading: ScriptRoles, script: str) -> str:
    """Return a note for a script that builds on parameter servers while none is started; "" if its
    text names a collective strategy too, or nothing is known of it."""
    needs = reading.needs_servers
    if needs is None or reading.collective is not None:
        return ""
    chief = " --chief" if reading.needs_chief else ""
    return (
        f"{script} builds on parameter servers ({needs[0]}, line {needs[1]}), and none is started; "
        f"with them: allaboard run --ps 1 -n {n}{chief} {script}"
    )


def served_tasks(
    tasks: tuple[tuple[str, int], ...], mode: str, reading: ScriptRoles
) -> frozenset[int]:
    """Return the numbers of the tasks for which allaboard runs the server loop.

    ``mode`` auto: if the script makes no Server itself, its ps, and also the workers of a script
    whose program runs on a chief. ``script``: none.
    """
    if mode == "script" or reading.serves_itself or not reading.is_readable:
        return frozenset()
    jobs = ("ps", "worker") if reading.needs_chief else ("ps",)
    return frozenset(n for n, (job, _) in enumerate(tasks) if job in jobs)


def _count(option: str, text: str, script: str) -> int:
    if not text.isdecimal() or int(text) > MAX_TASKS or (option == "-n" and int(text) < 1):
        least = 0 if option == "--ps" else 1
        noun = "parameter servers" if option == "--ps" else "workers"
        raise InvalidRolesError(
            f'{option} expects a number of {noun} from {max(1, least)} to {MAX_TASKS}, got "{text}"; '
            f"try: allaboard run --ps 1 -n 2 {script}"
        )
    return int(text)
