"""Faults that several starts of one job show: members that never came, hosts that are each alone. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from allaboard.diagnosis.logs.task_identification import task_from_name
from allaboard.diagnosis.readers.job_start_log import (
    ACCELERATE,
    CANNOT_REACH,
    EACH_ALONE,
    FOLLOW_FROM_ALONE,
    FOLLOW_FROM_TWO_AS_ONE,
    IDLE,
    NEVER_CAME,
    NO_COORDINATOR,
    OWN_COUNT,
    SERVER,
    SERVICE,
    TWO_AS_ONE,
)
from allaboard.facts import Heard, JobStart, Severity, Speaker, Who

MAX_LINES_OF_ONE_START = 400
"""Lines within which the processes of one start are logged; a later attempt may claim the same ranks."""

_HOST_IN_NAME = re.compile(
    r"(?<![a-z])(?:rank|worker|node|host|pod|task|launcher|machine|server|master|slave|gpu|instance|replica"
    r"|algo|vm|slice|compute|dgx|tpu)"
    r"(?:[-_.]?\d|[-_]\w|[a-rt-z](?![a-z0-9]))|\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}",
    re.IGNORECASE,
)
"""Matches names of files that are one host's or member's, and not one run's of several."""
_ALONE_FIX = {
    "DeepSpeed": "start it once, on one host: deepspeed --hostfile=HOSTFILE SCRIPT (a line `HOST slots=N` "
    "for "
    "each host); or on each host: deepspeed --no_ssh --node_rank=I --master_addr=HOST0 --hostfile=HOSTFILE "
    "SCRIPT; with accelerate: deepspeed_multinode_launcher: standard, and another machine_rank on each",
    "Lightning": "Trainer(num_nodes=N), and on each host MASTER_ADDR of the first one and a NODE_RANK of its "
    "own; or srun, one task a device",
    "torchrun": "on each host: torchrun --nnodes=N --rdzv-backend=c10d --rdzv-endpoint=HOST0:PORT "
    "--rdzv-id=JOB SCRIPT",
    "MultiWorkerMirroredStrategy": "set TF_CONFIG on each host before the strategy is made: the whole "
    "cluster, and the host's own task; check it: allaboard check",
}
_OWN_COUNT_FIX = {
    OWN_COUNT: "which mpirun; mpirun --version   # it must be of the MPI that Horovod or mpi4py was built "
    "with (horovodrun --check-build; python -c 'import mpi4py; print(mpi4py.get_config())'); in Slurm: srun "
    "--mpi=pmix; or horovodrun -np N",
    ACCELERATE: "one launcher a host: srun --ntasks-per-node=1 bash -c 'accelerate launch --multi_gpu "
    "--num_processes TOTAL --num_machines $SLURM_NNODES --machine_rank $SLURM_NODEID --main_process_ip HOST0 "
    "--main_process_port 29500 SCRIPT'   # python SCRIPT alone is one process",
}
"""What to do next about processes that each count themselves as the only one, by who wrote the count."""


def start_messages(
    starts: Sequence[JobStart], wait_was_ended: bool, ranks: Mapping[str, int]
) -> Iterator[Heard]:
    """Return what the starts show together.

    ``wait_was_ended``: something that is not a member ended the job. ``ranks`` are those of the files.
    """
    yield from _waiting_servers([s for s in starts if s.launcher == SERVER])
    by_launcher: dict[str, list[JobStart]] = defaultdict(list)
    for start in starts:
        if start.launcher != SERVER:
            by_launcher[start.launcher].append(start)
    for launcher, fix in _OWN_COUNT_FIX.items():
        yield from _each_of_one(by_launcher.pop(launcher, []), fix)
    yield from _no_coordinator(by_launcher.pop(IDLE, []), ranks)
    yield from _two_services(by_launcher.pop(SERVICE, []))
    for launcher, launcher_starts in by_launcher.items():
        yield from _each_alone(launcher, launcher_starts, ranks)
        claimed_twice = list(_claimed_twice(launcher, launcher_starts))
        yield from claimed_twice or _never_came(launcher, launcher_starts, wait_was_ended)


def _each_of_one(starts: Iterable[JobStart], fix: str) -> Iterator[Heard]:
    """Report several processes of one log that each count themselves as the only one."""
    by_file: dict[str, dict[str, JobStart]] = defaultdict(dict)
    for start in starts:
        by_file[start.place.file].setdefault(start.job, start)
    for of_file in by_file.values():
        alone = [s for s in of_file.values() if s.number == 0 and s.size == 1]
        first, last = alone[0] if alone else None, alone[-1] if alone else None
        if first is None or last is None or len(alone) < max(2, len(of_file)):
            continue
        if last.place.line - first.place.line > MAX_LINES_OF_ONE_START:
            continue  # one run after the other
        yield Heard(
            rule=EACH_ALONE,
            says=f"{len(alone)} processes were started together, and each counts itself as rank 0 of 1: each "
            "trains alone",
            speakers=tuple(Speaker(-1, s.line, s.place) for s in alone),
            fix=fix,
            explains=FOLLOW_FROM_ALONE,
            proves_not="that they are of one job: processes that are meant to be alone look the same",
        )


def _no_coordinator(starts: Sequence[JobStart], ranks: Mapping[str, int]) -> Iterator[Heard]:
    """Report servers of parameter servers and workers that all wait, if no log is that of a coordinator.

    ``ranks`` has all files.
    """
    tasks = {s.place.file: task_from_name(s.place.file) for s in starts}
    jobs = {task.partition(" ")[0] for task in tasks.values()}
    if jobs != {"ps", "worker"} or tasks.keys() != ranks.keys():
        return
    yield Heard(
        rule=NO_COORDINATOR,
        says=f"{', '.join(sorted(tasks.values())[:8])} started their servers and wait for orders; the chief "
        "(the coordinator of ParameterServerStrategy), which gives them, is not among these logs",
        speakers=tuple(Speaker(-1, s.line, s.place) for s in starts),
        fix='start one more process as the chief: "chief": ["HOST:PORT"] in the cluster of every '
        'TF_CONFIG, and in its own "task": {"type": "chief", "index": 0}; it alone makes the '
        "strategy and calls fit; or read its log",
        about=(Who(job="chief", index=0),),
        severity=Severity.WARNING,
        proves_not="that the chief does not run: its log may only be missing here",
    )


def _two_services(starts: Sequence[JobStart]) -> Iterator[Heard]:
    """Report processes that all start JAX's coordination service on one port, if one of them cannot."""
    by_port: dict[str, list[JobStart]] = defaultdict(list)
    for start in starts:
        by_port[start.job].append(start)
    for port, of_port in by_port.items():
        if len(of_port) < 2:
            continue
        yield Heard(
            rule=TWO_AS_ONE,
            says=f"{len(of_port)} processes take themselves for process 0: each starts JAX's coordination "
            f"service on port {port}, and only one can",
            speakers=tuple(Speaker(-1, s.line, s.place) for s in of_port),
            fix="give every process a number of its own: jax.distributed.initialize(process_id=int("
            "os.environ['SLURM_PROCID']))   # or JAX_PROCESS_ID; under srun and mpirun JAX finds it by "
            "itself if initialize() gets no arguments",
            explains=FOLLOW_FROM_TWO_AS_ONE,
            # Attempts one after the other start it as often, and each can listen.
            only_explains=True,
            proves_not="that they are of one job: an earlier attempt that still runs looks the same",
        )


def _claimed_twice(launcher: str, starts: Iterable[JobStart]) -> Iterator[Heard]:
    """Report ranks that two processes of one log claim, while the log ends before all have come."""
    by_file: dict[str, list[JobStart]] = defaultdict(list)
    for start in starts:
        if start.tells_completion and start.size > 1:
            by_file[start.place.file].append(start)
    for of_file in by_file.values():
        first_start, last_start = of_file[0], of_file[-1]
        numbers = sorted({s.number for s in of_file})
        twice = [n for n in numbers if sum(s.number == n for s in of_file) > 1]
        is_one_start = last_start.place.line - first_start.place.line <= MAX_LINES_OF_ONE_START
        if (
            not twice
            or last_start.is_complete
            or not is_one_start
            or len(numbers) >= first_start.size
        ):
            continue
        shown = ", ".join(map(str, twice[:8])) + (", ..." if len(twice) > 8 else "")
        yield Heard(
            rule=TWO_AS_ONE,
            says=f"several processes claim rank {shown} of {first_start.size} ({launcher}): each host "
            "counts its own processes from 0",
            speakers=(Speaker(-1, last_start.line, last_start.place),),
            fix="start one task a device and let Slurm count them: #SBATCH --nodes=N --ntasks-per-node=GPUS, "
            "then srun python SCRIPT; without Slurm: export NODE_RANK=I, another one on each host",
            about=tuple(Who(index=n, rank=n) for n in twice[:8]),
            size=first_start.size,
            proves_not="that they ran at the same time: two attempts in one log look the same",
        )


def _waiting_servers(starts: Sequence[JobStart]) -> Iterator[Heard]:
    """Report workers of TensorFlow whose logs end where they wait for the others."""
    waiting = {s.number: s for s in starts if s.ends_log and s.size > 1 and s.number >= 0}
    if not waiting or len(waiting) < len(starts):
        return
    first_start = waiting[min(waiting)]
    absent = [n for n in range(first_start.size) if n not in waiting]
    other_address = first_start.members[
        absent[0] if absent else (first_start.number + 1) % first_start.size
    ]
    host, _, port = other_address.rpartition(":")
    all_names = first_start.names or tuple(f"worker {n}" for n in range(first_start.size))
    names = ", ".join(all_names[n] for n in sorted(waiting)[:8])
    absent_names = ", ".join(all_names[n] for n in absent[:8])
    yield Heard(
        rule=NEVER_CAME if absent else CANNOT_REACH,
        says=f"{names} started and {'waits' if len(waiting) == 1 else 'wait'} for "
        f"{absent_names or 'each other'}: the log ends there",
        speakers=tuple(Speaker(-1, s.line, s.place) for s in waiting.values()),
        fix=f"from the host of {all_names[first_start.number]}: nc -vz {host} {port}   # "
        + (
            "refused: start that worker, and read its log; no answer: a firewall, or a wrong address"
            if absent
            else "all workers must reach each other at the addresses in TF_CONFIG: firewalls, names"
        ),
        about=tuple(_who(all_names[n]) for n in absent[:8]),
        severity=Severity.WARNING,
        proves_not="that it still hangs: the log of a start that goes on ends there too",
    )


def _who(name: str) -> Who:
    job, _, index = name.partition(" ")
    return Who(job=job, index=int(index))


def _never_came(launcher: str, starts: Iterable[JobStart], wait_was_ended: bool) -> Iterator[Heard]:
    """Report members that never came, if the first one, which counts them, waited to the end of its log."""
    counting = [s for s in starts if s.tells_completion and s.size > 1]
    counting_start = next((s for s in counting if s.number == 0), None)
    if counting_start is None or any(s.is_complete for s in counting):
        return
    arrived = sorted({s.number for s in counting if s.size == counting_start.size})
    if len(arrived) >= counting_start.size:
        return
    if not wait_was_ended:
        if all(s.ends_log for s in counting):
            yield _still_waiting(launcher, counting_start, arrived)
        return
    yield Heard(
        rule=NEVER_CAME,
        says=f"{len(arrived)} of {counting_start.size} members came ({launcher}); the job waited for the "
        "others, which were not started, until a limit or a person ended it",
        speakers=tuple(Speaker(s.number, s.line, s.place) for s in counting[:1]),
        fix=f"start {counting_start.size} processes: srun --ntasks={counting_start.size} SCRIPT   # `#SBATCH "
        "--ntasks` alone starts none; or torchrun, with as many on each host as devices",
        size=counting_start.size,
        proves_not="why the others are missing: those that were started and failed at once look the same",
    )


def _still_waiting(launcher: str, first_start: JobStart, arrived: Sequence[int]) -> Heard:
    """Return what a log shows that ends while the first member waits for others."""
    absent = [n for n in range(first_start.size) if n not in arrived]
    shown = ", ".join(map(str, absent[:8])) + (", ..." if len(absent) > 8 else "")
    return Heard(
        rule=NEVER_CAME,
        says=f"{len(arrived)} of {first_start.size} members have come when the log ends ({launcher}); they "
        f"wait for rank {shown}",
        speakers=(Speaker(first_start.number, first_start.line, first_start.place),),
        fix=f"start the others, or read their logs: {first_start.size} processes, one a device: "
        "#SBATCH --nodes=N --ntasks-per-node=GPUS, then srun python SCRIPT",
        about=tuple(Who(index=n, rank=n) for n in absent[:8]),
        size=first_start.size,
        severity=Severity.WARNING,
        proves_not="that they were not started: one that does not reach the first looks the same",
    )


def _each_alone(
    launcher: str, starts: Iterable[JobStart], ranks: Mapping[str, int]
) -> Iterator[Heard]:
    """Report the files in which the same job was started as the first of its members, in each of them."""
    firsts: dict[tuple[int, str], list[JobStart]] = defaultdict(list)
    for start in starts:
        if start.number == 0 and (start.size == 1 or not start.counts_nodes):
            firsts[start.size, start.job].append(start)
    for (size, _job), first_starts in firsts.items():
        by_file = {s.place.file: s for s in first_starts}
        # Two files of one host may be of two runs, one after the other.
        of_hosts = [
            s for f, s in by_file.items() if ranks.get(f, -1) >= 0 or _HOST_IN_NAME.search(f)
        ]
        if len(of_hosts) < 2:
            continue
        files = " and ".join(s.place.file for s in of_hosts[:4])
        count = (
            f"1 node{'s' if size > 1 else ''}" if of_hosts[0].counts_nodes else f"{size} members"
        )
        yield Heard(
            rule=EACH_ALONE,
            says=f"{len(of_hosts)} hosts each started a job of their own ({launcher}: {count}, and each is "
            f"number 0): each trains alone",
            speakers=tuple(Speaker(-1, s.line, s.place) for s in of_hosts),
            fix=_ALONE_FIX[launcher],
            explains=FOLLOW_FROM_ALONE,
            proves_not=f"that they are of one job: {files} may be of several",
        )
