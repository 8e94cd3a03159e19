"""What launchers and frameworks write of the job that they start or join: how many members, and which one.

Each line is true of one process. Several of them together show members that never came, and hosts that each
started a job of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, JobStart, Testimony

NEVER_CAME, EACH_ALONE = "JOIN001", "JOIN010"
"""The rules of members that never came, and of members that each have a job of their own."""
TWO_AS_ONE, CANNOT_REACH = "JOIN005", "JOIN004"
"""The rules of processes that claim one rank, and of members that have started and do not meet."""
FOLLOW_FROM_ALONE = ("NET005", "JOIN001", "JOIN004", "JOIN007")
"""Rules whose messages follow where each host is alone."""
FOLLOW_FROM_TWO_AS_ONE = ("NET005",)
"""Rules whose messages follow where two processes claim one rank on one host."""
NO_COORDINATOR = "PS002"
"""The rule of servers that wait for the chief."""
MAX_STARTS = 10_000
"""Starts that are read of one log."""
_PROGRESS = re.compile(
    r"\bepoch\b|\bstep\b|\bit/s|s/it\b|\bloss\b|CUDA_VISIBLE_DEVICES|[Tt]rainable params|Sanity|\biter\b",
    re.IGNORECASE,
)
"""Shows that a program has come beyond its start."""
_WAITS = re.compile(
    r"^[DI]\d{4} [^\n]*grpc|Enabled multi-worker collective ops|Waiting for the cluster, timeout"
    r"|Using MirroredStrategy with devices|MultiWorkerMirroredStrategy with cluster_spec"
    r"|Check health not enabled|Started server with target|Initializ\w+ \w*[Cc]oordination"
    r"|distribute_coordinator\.py|CollectiveAllReduceStrategy with cluster_spec|`eval_\w+` is not passed in"
    r"|Running Distribute Coordinator|GrpcChannelCache for job|^[IWE]\d{0,4}$"
)
"""What a worker of TensorFlow writes while it waits for the others."""
SERVER = "TensorFlow's server"
"""Launcher of the starts of TensorFlow's own servers, which know the addresses of all members."""
OWN_COUNT = "its own count"
"""Launcher of the lines in which processes print their pid, rank and size; ``job`` is the pid."""
ACCELERATE = "accelerate's count"
"""The same of what accelerate's processes print of their state; ``job`` is who a prefix names."""
SERVICE = "JAX's coordination service"
"""Launcher of the lines in which process 0 of JAX starts it; ``job`` is the port."""
IDLE = "an idle server of TensorFlow"
"""Launcher of the starts of servers after which their log ends: they wait for a client's orders."""
_SERVER_START = re.compile(
    r"Initialize GrpcChannelCache for job worker -> \{(?P<members>0 -> [^}\n]{1,4000})\}.{0,2000}?"
    r"Started server with target: grpc://(?P<own>[\w.:\[\]-]{1,255}:\d{1,5})",
    re.DOTALL,
)
_MEMBER = re.compile(r"(\d{1,7}) -> ([^,\s]{1,255})")
_STRATEGY_START = re.compile(
    r"(?P<name>MultiWorkerMirroredStrategy|CollectiveAllReduceStrategy) with cluster_spec = "
    r"(?:ClusterSpec\()?(?P<spec>\{[^{}\n]{1,4000}(?:\{\}[^{}\n]{0,400})?\})\)?, "
    r"task_type = '(?P<job>\w{1,40})', task_id = (?P<task>\d{1,7}), num_workers = (?P<size>\d{1,7})"
)
_JOB = re.compile(r"'(?P<job>\w{1,40})': \[(?P<members>[^\]\n]{0,4000})\]")


@dataclass(frozen=True, kw_only=True)
class StartLine:
    """One wording of a start."""

    launcher: str
    """Who writes it."""
    pattern: str
    """Regular expression of the line; its groups are ``number`` (which one it is, from 0), ``size`` and
    ``job`` (what else is the same for all members of one job)."""
    completed: str = ""
    """Regular expression of what is written once all have come; "" if nothing is."""
    number: int = -1
    """Which one it is, if the line means that without a number."""
    size: int = 0
    """How many there are, likewise."""
    counts_nodes: bool = False
    """True if it counts hosts, and not processes."""
    sample: str
    """A line in which it must be found."""
    source: str
    """The versions from whose source the wording is."""


START_LINES = (
    StartLine(
        launcher="Lightning",
        pattern=r"(?:initializing|Initializing) (?:ddp|distributed): GLOBAL_RANK: (?P<number>\d{1,7}), "
        r"MEMBER: \d{1,7}/(?P<size>\d{1,7})",
        completed=r"All (?:distributed|DDP) processes registered",
        sample="Initializing distributed: GLOBAL_RANK: 0, MEMBER: 1/8",
        source="PyTorch Lightning 0.8 to 2.6 (`initializing ddp` until 1.7)",
    ),
    StartLine(
        launcher="DeepSpeed",
        pattern=r"Unable to find hostfile, will proceed with training with local resources only"
        r".{0,4000}? cmd = (?P<job>[^\n]{1,2000}).{0,4000}?nnodes=(?P<size>\d{1,5}), "
        r"num_local_procs=\d+, node_rank=(?P<number>\d{1,5})",
        counts_nodes=True,
        sample="[WARNING] [runner.py:196:fetch_hostfile] Unable to find hostfile, will proceed with training "
        "with local resources only.\n[INFO] [runner.py:555:main] cmd = /usr/bin/python3 -u -m "
        "deepspeed.launcher.launch --master_addr=10.0.0.2 --master_port=29500 fit.py\n[INFO] "
        "[launch.py:151:main] nnodes=1, num_local_procs=8, node_rank=0",
        source="DeepSpeed 0.3 to 0.18 (launcher/runner.py, launcher/launch.py)",
    ),
    StartLine(
        launcher="torchrun",
        pattern=r"Starting elastic_operator with launch configs:\s+entrypoint +: (?P<job>\S+)\s+"
        r"min_nodes +: (?P<size>\d{1,5})\s+max_nodes +: (?P=size)\s",
        number=0,
        counts_nodes=True,
        sample="Starting elastic_operator with launch configs:\n  entrypoint       : fit.py\n  min_nodes    "
        "    : 1\n  max_nodes        : 1\n  nproc_per_node   : 8",
        source="PyTorch 1.9 to 2.13 (torch/distributed/launcher/api.py)",
    ),
    StartLine(
        launcher=OWN_COUNT,
        pattern=r"\bpid[ =:]{1,3}(?P<job>\d{1,9})\b[^\n]{0,80}?\brank[ =:]{1,3}(?P<number>\d{1,7})"
        r"\b[^\n]{0,20}?(?:\bsize|\bof|/|\bworld[_ ]size)[ =:]{1,3}(?P<size>\d{1,7})\b",
        sample="Horovod initialized. Hostname node7, pid 12116, rank 0 / size 1, local rank 0 / local size "
        "1.",
        source="RETURNN 1.0 (util/basic.py), and as scripts print rank and size of Horovod or MPI",
    ),
    StartLine(
        launcher=ACCELERATE,
        pattern=r"Distributed environment: [^\n]{1,60}\s+Num processes: (?P<size>\d{1,7})\s+"
        r"Process index: (?P<number>\d{1,7})",
        sample="Distributed environment: NO\nNum processes: 1\nProcess index: 0",
        source="accelerate 0.5 to 1.12 (state.py)",
    ),
    StartLine(
        launcher="MultiWorkerMirroredStrategy",
        pattern=r"Single-worker (?:MultiWorkerMirroredStrategy|CollectiveAllReduceStrategy) with "
        r"local_devices",
        number=0,
        size=1,
        sample="INFO:tensorflow:Single-worker MultiWorkerMirroredStrategy with local_devices = "
        "('/device:GPU:0',)",
        source="TensorFlow 1.14 to 2.21 (collective_all_reduce_strategy.py)",
    ),
    StartLine(
        launcher=SERVICE,
        pattern=r"Starting JAX distributed service on \S{0,80}?:(?P<job>\d{1,5})(?!\S)",
        number=0,
        size=1,
        sample="I1102 10:00:01.1 911 distributed.py:102] Starting JAX distributed service on [::]:1234",
        source="JAX 0.3 to 0.10 (jax/_src/distributed.py)",
    ),
)


def read_log(exhibit: Exhibit) -> Testimony | None:
    starts = tuple(s for line in START_LINES for s in _starts(exhibit, line))[:MAX_STARTS]
    servers = (*_server_starts(exhibit),) or (*_strategy_starts(exhibit),)
    starts = (*starts, *servers, *_idle_servers(exhibit))
    return Testimony(starts=starts) if starts else None


def _starts(exhibit: Exhibit, start_line: StartLine) -> Iterator[JobStart]:
    text = exhibit.text
    matches = list(re.finditer(start_line.pattern, text, re.DOTALL))
    ends_log = bool(matches) and not text[matches[-1].end() :].strip()
    is_own_count = start_line.launcher == ACCELERATE
    for match in matches:
        groups = match.groupdict()
        following = text[match.end() :]
        is_complete = bool(_PROGRESS.search(following)) or bool(
            start_line.completed and re.search(start_line.completed, following)
        )
        yield JobStart(
            place=exhibit.place_of_line(text.count("\n", 0, match.start())),
            line=_shown(match[0]),
            launcher=start_line.launcher,
            number=int(groups["number"]) if groups.get("number") else start_line.number,
            size=int(groups["size"]) if groups.get("size") else start_line.size,
            job=groups.get("job") or (_process(exhibit) if is_own_count else ""),
            counts_nodes=start_line.counts_nodes,
            is_complete=is_complete,
            tells_completion=bool(start_line.completed),
            ends_log=ends_log,
        )


def _process(exhibit: Exhibit) -> str:
    """Return a name for the process that the prefixes of these lines name."""
    return f"{exhibit.rank} {exhibit.local} {exhibit.host} {exhibit.pid}"


def _server_starts(exhibit: Exhibit) -> Iterator[JobStart]:
    """Yield the start of the server of one worker among several, without parameter servers."""
    text = exhibit.text
    match = _SERVER_START.search(text) if "GrpcChannelCache for job ps" not in text else None
    members = dict(_MEMBER.findall(match["members"])) if match is not None else {}
    if match is None or list(members) != [str(n) for n in range(len(members))]:
        return
    own_port = match["own"].rpartition(":")[2]
    own_numbers = [n for n, a in members.items() if a in (match["own"], f"localhost:{own_port}")]
    following = text[match.end() :].split("\n")[1:]
    yield JobStart(
        place=exhibit.place_of_line(text.count("\n", 0, match.end())),
        line=f"Started server with target: grpc://{match['own']}",
        launcher=SERVER,
        number=int(own_numbers[0]) if len(own_numbers) == 1 else -1,
        size=len(members),
        members=tuple(members.values()),
        ends_log=all(not line.strip() or _WAITS.search(line) for line in following),
    )


def _strategy_starts(exhibit: Exhibit) -> Iterator[JobStart]:
    """Yield the start of MultiWorkerMirroredStrategy in one of several members.

    It waits for the others after this line, at its first collective at the latest.
    """
    text = exhibit.text
    match = _STRATEGY_START.search(text)
    if match is None:
        return
    members = {
        f"{of_job['job']} {index}": address.strip(" '\"")
        for of_job in sorted(_JOB.finditer(match["spec"]), key=lambda m: m["job"])
        for index, address in enumerate(filter(str.strip, of_job["members"].split(",")))
        if of_job["job"] in ("chief", "worker")
    }
    own_name = f"{match['job']} {int(match['task'])}"
    if len(members) != int(match["size"]) or own_name not in members:
        return
    following = text[match.end() :].split("\n")[1:]
    yield JobStart(
        place=exhibit.place_of_line(text.count("\n", 0, match.start())),
        line=_shown(match[0]),
        launcher=SERVER,
        number=list(members).index(own_name),
        size=len(members),
        members=tuple(members.values()),
        names=tuple(members),
        ends_log=all(not line.strip() or _WAITS.search(line) for line in following),
    )


def _idle_servers(exhibit: Exhibit) -> Iterator[JobStart]:
    """Yield the start of a server with which the log ends."""
    text = exhibit.text.rstrip()
    last_line = text.rpartition("\n")[2]
    if "Started server with target: grpc://" in last_line:
        yield JobStart(
            place=exhibit.place_of_line(text.count("\n")),
            line=last_line[-120:],
            launcher=IDLE,
            number=0,
            size=1,
            ends_log=True,
        )


def _shown(text: str) -> str:
    """Return the first and the last line of what was found, without the time before them."""
    lines = text.split("\n")
    return " ... ".join(dict.fromkeys(line.strip()[-120:] for line in (lines[0], lines[-1])))


READER = LogReader(read=read_log)
