"""Messages of Horovod's stall inspector.

The samples are from Horovod's documents and source: its last release does not build against the frameworks of
today.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from allaboard.analysis.log_ends.post_traceback_output import (
    has_ended_well,
    progress_lines,
    trains_on_after,
)
from allaboard.analysis.log_messages import KnownMessage, find_known_messages
from allaboard.contracts import LogReader
from allaboard.facts import Exhibit, Heard, Testimony, Who
from allaboard.facts.rank_sets import name_ranks
from allaboard.formats.dumps.python_tracebacks import TRACEBACK_HEAD

_DOCUMENT = "from Horovod's documents (Troubleshooting, Stalled Ranks), not recorded"
_HEAD = re.compile(r"^(?:\[\d+,\d+\]<std\w+>:)?(?:Missing|Stalled) ranks: *$", re.MULTILINE)
_RANK = re.compile(r"\n(?:\[\d+,\d+\]<std\w+>:)?(\d{1,7}): \[([^,\]\n]{1,200})[^\n]*")
"""Matches one line for each rank, with the tensors that it did not submit; long lists end in ``...``."""


def _missing_ranks_message(head: str) -> KnownMessage:
    return KnownMessage(
        key=f"{head} ranks:",
        pattern=head + r" ranks:\s*\n(?:\[\d+,\d+\]<std\w+>:)?(?P<rank>\d+): "
        r"\[(?P<tensor>[^,\]\n]{1,200})",
        rule="LOG001",
        says="rank {rank} did not submit {tensor}, which the others wait for",
        fix="look at rank {rank}: its log, or py-spy dump --pid PID while it hangs",
        proves_not="that rank {rank} is at fault where ranks run different code: then each misses the "
        "other's tensors",
        sample="[1,0]<stderr>:[W stall_inspector.cc:105] One or more tensors were submitted to be "
        "reduced, gathered or broadcasted by subset of ranks and are waiting for remainder of ranks for "
        f"more than 60 seconds. \n{head} ranks:\n1: [DistributedAdam_Allreduce/cond/HorovodAllreduce]",
        source=_DOCUMENT,
    )


MISSING, STALLED = _missing_ranks_message("Missing"), _missing_ranks_message("Stalled")
OPERATIONS = KnownMessage(
    key="[missing ranks:",
    # Begins at a word, of bounded length: else a line without spaces costs the square of its length.
    pattern=r"(?<!\S)(?P<tensor>\S{1,400}) \[missing ranks: (?P<rank>[\d, ]+)\]",
    rule="LOG001",
    says="rank {rank} did not submit {tensor}, which the others wait for",
    fix="look at rank {rank}: its log, or py-spy dump --pid PID while it hangs",
    proves_not="that it is at fault where ranks run different code: then each misses the other's tensors",
    sample="Stalled ops:\nHorovodBroadcast_global_step [missing ranks: 1, 3]",
    source=_DOCUMENT,
)
READY = KnownMessage(
    key="[ready ranks:",
    pattern=r"(?<!\S)(?P<tensor>\S{1,400}) \[ready ranks: (?P<ready>[\d, ]+)\]",
    rule="LOG001",
    says="not all ranks submitted {tensor}, which ranks {ready} wait for",
    fix="look at the ranks that are not among {ready}: their logs, or py-spy dump --pid PID while they hang",
    proves_not="that they are at fault where ranks run different code: then each misses the others' tensors",
    sample="Stalled ops: allreduce.conv1.weight [ready ranks: 1, 2, 3]",
    source="its wording from the source of Horovod 0.10 to 0.13 (operations.cc)",
)
"""It lists those that came; the others are the rest of the world, whose size it does not tell."""
STORE = KnownMessage(
    key="http_store.cc",
    pattern=r"http_store\.cc:\d+\] Wait timeout after (?P<seconds>\d+)"
    r" seconds for key\(s\): (?P<rank>\d{1,7})(?![^\n]*http_store\.cc:\d+\] Wait timeout)",
    rule="JOIN004",
    says="rank {rank} did not give its address to Horovod's rendezvous within {seconds} s",
    fix="read the log of rank {rank}: did it start, and reach hvd.init()? A slow start needs more time: "
    "horovodrun --gloo-timeout-seconds 300, or HOROVOD_GLOO_TIMEOUT_SECONDS=300",
    proves_not="that rank {rank} failed: it may have been slow, or could not reach the rendezvous",
    awaits=True,
    sample="terminate called after throwing an instance of 'gloo::IoException'\n  what():  "
    "[/tmp/horovod/common/gloo/http_store.cc:57] Wait timeout after 30 seconds for key(s): 0. You may want "
    "to increase the timeout via HOROVOD_GLOO_TIMEOUT_SECONDS",
    source="its wording from the source of Horovod 0.18 to 0.28 (common/gloo/http_store.cc)",
)
TASKS_TO_START = KnownMessage(
    key="Timed out waiting for ",
    pattern=r"Timed out waiting for (?P<what>tasks? to start|hosts? to (?:respond|acknowledge)"
    r"|[\w ]{1,40}?)\. Please check connectivity between servers",
    rule="JOIN001",
    says="horovodrun's tasks on the other hosts did not report back in time ({what}); no rank was started",
    fix="ssh -o BatchMode=yes HOST hostname   # each host, and back: the tasks connect to horovodrun on any "
    "port; then --network-interface NAME (ip -br address), open TCP ports, or --start-timeout 300",
    proves_not="which host: those that ssh cannot reach, those behind a firewall and slow ones look the same",
    sample="Exception: Timed out waiting for tasks to start. Please check connectivity between servers. You "
    "may need to increase the --start-timeout parameter if you have too many servers.",
    source="its wording from the source of Horovod 0.16 to 0.28 (runner/common/util/timeout.py)",
)
SPARK_TASKS = KnownMessage(
    key="Timed out waiting for ",
    pattern=r"Timed out waiting for (?P<what>[\w ]{1,60}?)\. Please check that you have enough resources to "
    r"run all Horovod processes",
    rule="JOIN001",
    says="Horovod's driver on Spark waited in vain for {what}: Spark did not start as many tasks at the "
    "same time as num_proc asks for, or they could not reach the driver",
    fix="compare num_proc with the free cores (spark.executor.instances x spark.executor.cores / "
    "spark.task.cpus; the UI's Executors page); the tasks also connect to the driver on any port; if the "
    "executors only come slowly: start_timeout=1200",
    proves_not="which of both: too few executors and a firewall look the same",
    sample="Exception: Timed out waiting for Spark tasks to start. Please check that you have enough "
    "resources to run all Horovod processes. Each Horovod process runs in a Spark task.",
    source="its wording from the source of Horovod 0.16 to 0.28 (spark/runner.py)",
)
NO_RENDEZVOUS = KnownMessage(
    key="HTTP request failed",
    pattern=r"what\(\): +HTTP request failed\.?\s*$|HTTP (?:GET|PUT) request failed too many times, aborting",
    rule="JOIN004",
    says="ranks could not reach Horovod's rendezvous server, which runs in the launcher (horovodrun, the "
    "driver on Spark)",
    fix="from a rank's host: nc -vz HOST PORT   # HOROVOD_GLOO_RENDEZVOUS_ADDR and _PORT: does the launcher "
    "still run there, and is it the address of a network that all hosts share "
    "(horovodrun --network-interface NAME, horovod.spark.run(nics=))? Else unset http_proxy",
    proves_not="that the launcher had ended: a firewall, a wrong interface and a proxy look the same",
    sample="[2021-06-07 11:51:57.963853: E horovod/common/gloo/http_store.cc:96] HTTP GET request failed too "
    "many times, aborting. See exception message above.",
    source="its wording from the source of Horovod 0.18 to 0.28 (common/gloo/http_store.cc)",
)
SHUT_DOWN = KnownMessage(
    key="Horovod has been shut down",
    pattern=r"Horovod has been shut down\. This (?:was|has been) caused by an exception on one of the ranks?",
    rule="EXIT005",
    says="Horovod was shut down under a rank that still used it: another one raised an exception, or had "
    "fewer steps and ended first",
    fix="read the first exception above the first of these lines, in the logs of all ranks (horovodrun "
    "--output-filename FOLDER keeps one of each rank); if no rank has any, give all as many steps: "
    "drop_remainder, steps_per_epoch, or hvd.join() in PyTorch",
    proves_not="which rank, nor which of both",
    explains=("LOG012",),
    sample="OP_REQUIRES failed at mpi_ops.cc:402 : Unknown: Horovod has been shut down. This was caused by "
    "an exception on one of the ranks or an attempt to allreduce, allgather or broadcast a tensor after one "
    "of the ranks finished execution.",
    source="its wording from the source of Horovod 0.10 to 0.28 (common/common.h)",
)
STARTS = (STORE, TASKS_TO_START, SPARK_TASKS)
"""What the launcher, or a rank, waited for in vain before the first step."""
MESSAGES = (MISSING, STALLED, OPERATIONS, READY)
MIN_STEPS_AFTER = 3
"""Lines about loss or steps after a stall that show that the ranks came after all."""


def read_log(exhibit: Exhibit) -> Testimony | None:
    text = exhibit.text
    starts = find_known_messages(exhibit, STARTS)
    starts += find_known_messages(exhibit, (NO_RENDEZVOUS,))[:1]
    last_mention = max(text.rfind(m.key) for m in MESSAGES)
    if last_mention >= 0 and (
        has_ended_well(progress_lines(text[last_mention:].split("\n")[1:]))
        or trains_on_after(text[last_mention:], "ranks:", MIN_STEPS_AFTER)
    ):
        return Testimony(heard=starts) if starts else None  # they came after all
    if camps := _camps(exhibit):
        return Testimony(heard=(*starts, camps))
    heard = [
        *starts,
        *_with_all_ranks(text, find_known_messages(exhibit, (MISSING, STALLED))),
        *_once_for_all_tensors(text, find_known_messages(exhibit, (OPERATIONS,))),
        *map(_without_the_ready, find_known_messages(exhibit, (READY,))[:1]),
    ]
    if (
        not heard and TRACEBACK_HEAD not in text
    ):  # else the traceback says more, be it that of the victim
        heard += find_known_messages(exhibit, (SHUT_DOWN,))[:1]
    return Testimony(heard=tuple(heard)) if heard else None


def _camps(exhibit: Exhibit) -> Heard | None:
    """Return that ranks wait for each other, if the lists of two tensors have no rank in common."""
    for message, verb in ((READY, "submitted"), (OPERATIONS, "did not submit")):
        tensors: dict[frozenset[int], str] = {}
        rows = message.compiled.finditer(exhibit.text) if message.key in exhibit.text else ()
        for row in rows:
            ranks = frozenset(
                map(int, re.findall(r"\d+", row["ready" if message is READY else "rank"]))
            )
            tensors.setdefault(ranks, row["tensor"])
        first, second = max(
            ((a, b) for a in tensors for b in tensors if a.isdisjoint(b)),
            key=lambda pair: (len(pair[0] | pair[1]), -len(pair[0])),
            default=(frozenset(), frozenset()),
        )
        if not first:
            continue
        clauses = [
            f"{name_ranks(ranks)} {verb} {tensors[ranks]}" for ranks in (first, second) if ranks
        ]
        smaller = first if len(first) <= len(second) else second
        heard = find_known_messages(exhibit, (message,))[0]
        return msgspec.structs.replace(
            heard,
            rule="LOG003",
            says=f"ranks wait for each other: {' and '.join(clauses)}",
            about=tuple(Who(index=r, rank=r) for r in sorted(smaller)[:64]),
            fix=f"compare what {name_ranks(first)} and {name_ranks(second)} run: another branch, another "
            "model, or tensors in another order or number; py-spy dump --pid PID of one of each shows where",
            proves_not="which of them is wrong",
        )
    return None


def _with_all_ranks(text: str, heard: tuple[Heard, ...]) -> tuple[Heard, ...]:
    """Return one message that names all ranks of the list; ``heard`` has only the first of them."""
    if not heard:
        return ()
    missing: dict[int, str] = {}
    for head in _HEAD.finditer(text):
        position = head.end()
        while row := _RANK.match(text, position):
            missing.setdefault(int(row[1]), row[2])
            position = row.end()
    if len(missing) < 2:
        return heard
    ranks = sorted(missing)[:64]
    ranks_text = name_ranks(ranks)
    return (
        msgspec.structs.replace(
            heard[0],
            says=f"{ranks_text} did not submit {missing[ranks[0]]}, which the others wait for",
            about=tuple(Who(index=r, rank=r) for r in ranks),
            fix=f"look at {ranks_text}: their logs, or py-spy dump --pid PID while they hang",
            proves_not="that they are at fault where ranks run different code: then each misses the "
            "others' tensors",
        ),
    )


def _without_the_ready(heard: Heard) -> Heard:
    """Return the message with the ranks that did not come, as far as the list of the others shows them."""
    match = READY.compiled.search(heard.speakers[0].line)
    ready = set(map(int, re.findall(r"\d+", match["ready"]))) if match is not None else set()
    absent = sorted(set(range(max(ready, default=0))) - ready)[:64]
    if not absent or match is None:
        return heard
    ranks_text = name_ranks(absent)
    return msgspec.structs.replace(
        heard,
        says=f"{ranks_text} did not submit {match['tensor']}, which the others wait for",
        about=tuple(Who(index=r, rank=r) for r in absent),
        fix=f"look at {ranks_text}: its log, or py-spy dump --pid PID while it hangs",
    )


def _once_for_all_tensors(text: str, heard: tuple[Heard, ...]) -> Iterator[Heard]:
    """Yield one message for each set of missing ranks; ``heard`` has one for each tensor."""
    if not heard:
        return
    tensors: dict[str, dict[str, None]] = {}
    for row in OPERATIONS.compiled.finditer(text):
        tensors.setdefault(row["rank"], {})[row["tensor"]] = None
    for ranks, missing in tensors.items():
        names = name_ranks([int(number) for number in re.findall(r"\d+", ranks)])
        first_message = next((h for h in heard if h.says.startswith(f"{names} did")), None)
        if first_message is None:
            continue
        name, *more = missing
        tensor_names = f"{len(missing)} tensors ({name} and others)" if more else name
        yield msgspec.structs.replace(
            first_message,
            says=f"{names} did not submit {tensor_names}, which the others wait for",
        )


READER = LogReader(read=read_log)
